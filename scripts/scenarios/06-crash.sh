#!/usr/bin/env bash
# The worst moment to die: the provider has charged the card, and nobody has
# written that down yet. The key stays locked until the dead replica's lease
# ends. Then a retry takes the payment over, asks the provider for the same
# charge under the same key of its own, and finishes it.
. "$(dirname "$0")/lib.sh"
scenario "kill -9 in the middle of a payment: 409 until the lease ends, then one payment, one charge"
shop
place_order
key=pay-$run
# Slower than the lease, so that the provider still hasn't answered when it ends.
slow=$((LEASE_SECONDS + 5))
pay='{"method":{"type":"card","token":"tok_slow_'$slow's"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider charges at once, and answers after $slow s."
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "While api-1 lives, a retry at api-2 is told to wait."
send early POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem early 409 idempotency_in_progress
expect_retry_after early

say "kill -9 api-1, which loses all it knew."
fault 'kill api-1' 'start api-1'
finish first
expect "status (000 is no answer at all)" "$(status first)" 000

lease_left=$(milliseconds_left "$key")
say "Nobody renews its lease any more; it ends in $lease_left ms. Until then api-2 says 409."
retry_while 409 $((lease_left / 1000 + 5)) second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect "it was told to wait, before" "$(answer_to test "$retries" -gt 0)" yes
expect_status second 201
expect "payment" "$(field second .status)" succeeded

say "One charge, for which the provider was asked twice."
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid

say "Start api-1 again. It answers the same."
heal
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
expect_charges "$order" "succeeded, attempts 2"
