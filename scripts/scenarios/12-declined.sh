#!/usr/bin/env bash
# A declined card is an answer. It is kept, and a retry gets it without asking the provider.
# Another card is another request and needs another key.
. "$(dirname "$0")/lib.sh"
scenario "A declined card is kept and replayed; another card needs another key"
shop
place_order
key=pay-$run
declined='{"method":{"type":"card","token":"tok_declined"}}'

say "Pay with a card that is declined."
send first POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$declined"
expect_problem first 402 payment_declined
expect_charges "$order" "declined, attempts 1"
expect_order "$order" pending

say "The same again: the same answer, and the provider is not asked."
send again POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$declined"
expect_replay first again
expect_charges "$order" "declined, attempts 1"
record kept "$key"
expect "status" "$(jq -r .status "$work/kept.record")" Failed

say "Another card under the same key is another request."
send other POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d '{"method":{"type":"card","token":"tok_visa"}}'
expect_problem other 422 idempotency_key_reused

say "With a new key it pays the order."
send paid POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key-2" -d '{"method":{"type":"card","token":"tok_visa"}}'
expect_status paid 201
expect_charges "$order" "declined, attempts 1; succeeded, attempts 1"
expect_order "$order" paid

say "The first key still returns the answer about the first card."
send late POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$declined"
expect_replay first late
