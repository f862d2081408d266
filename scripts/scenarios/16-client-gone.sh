#!/usr/bin/env bash
# The same, but the client never returns and the provider sends no webhook. The reconciler, which
# every replica runs, asks the provider for the same charge and settles the payment.
. "$(dirname "$0")/lib.sh"
scenario "Charged without an answer, and the client never returns: the reconciler settles the payment"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_charged_silent"}}'
# The client is given some seconds to come back; a handler that says nothing would be given a minute.
heal_seconds=40
paid() { probe -H "Authorization: Bearer $API_KEY" "$BASE_URL/v1/orders/$order" | jq -e '.status == "paid"'; }

say "Pay. The provider charges the card, closes the connection and sends no event."
send first POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem first 503 payment_outcome_unknown
expect_order "$order" paying

say "Nobody sends it again. The reconciler settles the payment."
wait_until "the order is paid" paid
expect_order "$order" paid
expect_charges "$order" "succeeded, attempts 2"

say "If the client comes back after all, it gets the answer, and the provider is not asked."
send late POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect "status" "$(status late)" 201
expect "X-Idempotent-Replay" "$(header late X-Idempotent-Replay)" true
expect "payment" "$(field late .status)" succeeded
expect_charges "$order" "succeeded, attempts 2"
