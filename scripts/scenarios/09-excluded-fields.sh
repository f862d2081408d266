#!/usr/bin/env bash
# Some fields differ with every attempt and mean nothing: the time of the client's clock, a nonce.
# Payments leave them out of the fingerprint. White space and the order of members are no
# difference either.
. "$(dirname "$0")/lib.sh"
scenario "Fields that differ with every attempt do not make it another request"
shop
place_order
key=pay-$run

say "Pay, with the client's time and a nonce."
send first POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" \
  -d '{"method":{"type":"card","token":"tok_visa"},"client_timestamp":"2025-01-01T12:00:00Z","request_nonce":"one"}'
expect_status first 201

say "Again, a minute later by the client's clock, with another nonce."
send later POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" \
  -d '{"method":{"type":"card","token":"tok_visa"},"client_timestamp":"2025-01-01T12:01:00Z","request_nonce":"two"}'
expect_replay first later

say "Without them, and with another order of members."
send rewritten POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" \
  -d '{ "method": { "token": "tok_visa", "type": "card" } }'
expect_replay first rewritten

say "But another card is another request, whatever the nonce."
send other POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" \
  -d '{"method":{"type":"card","token":"tok_mastercard"},"client_timestamp":"2025-01-01T12:00:00Z","request_nonce":"one"}'
expect_problem other 422 idempotency_key_reused

say "One charge."
expect_charges "$order" "succeeded, attempts 1"
expect_order "$order" paid
