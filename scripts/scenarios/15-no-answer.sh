#!/usr/bin/env bash
# The provider has charged the card, and hangs up without a word. Nobody knows
# what happened, so nobody calls it a failure: the client is told to try again,
# and the retry finds the charge that was made. No webhook comes to tell of it: on
# a slow machine it would be faster than the retry.
. "$(dirname "$0")/lib.sh"
scenario "Charged without an answer: 503 and not a failure; the retry finds the one charge"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_charged_silent"}}'

say "Pay at api-1. The card is charged, and the provider hangs up."
send first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem first 503 payment_outcome_unknown
expect_retry_after first
expect_charges "$order" "succeeded, attempts 1"
expect_order "$order" paying

say "Try again at once, at api-2: the key is free, and the provider is asked for the same charge."
send second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect "status" "$(status second)" 201 # by the retry itself or, if it came late, by the reconciler, who asked for the same
expect "payment" "$(field second .status)" succeeded
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid

say "From now on it is answered the same, at either replica."
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
expect_charges "$order" "succeeded, attempts 2"
