#!/usr/bin/env bash
# The provider charges the card and closes the connection without an answer. The outcome is
# unknown, so it is not a failure: the client gets 503, and its retry finds the charge. The
# provider sends no webhook here, because on a slow machine that could be faster than the retry.
. "$(dirname "$0")/lib.sh"
scenario "Charged without an answer: 503, not a failure; the retry finds the one charge"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_charged_silent"}}'

say "Pay at api-1. The provider charges the card and closes the connection."
send first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem first 503 payment_outcome_unknown
expect_retry_after first
quietly send order_before GET "$BASE_URL/v1/orders/$order"
quietly send charges_before GET "$PSP_URL/v1/charges?reference=$order"

say "Try again at once, at api-2: the key is free, and the provider is asked for the same charge."
send second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_settled second
if [ "$(header second X-Idempotent-Replay)" != true ]; then # or else the reconciler was first
  expect "the order was, before" "$(field order_before .status)" paying
  expect "attempts at the provider, before" "$(field charges_before '[.data[].attempts] | join(", ")')" 1
fi
expect "payment" "$(field second .status)" succeeded
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid

say "From now on both replicas return the same answer."
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
expect_charges "$order" "succeeded, attempts 2"
