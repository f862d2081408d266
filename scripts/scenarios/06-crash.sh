#!/usr/bin/env bash
# The worst moment for a crash: the provider has charged the card, and no replica has stored that
# yet. The key stays in progress until the lease of the dead replica ends. Then a retry takes the
# payment over, asks the provider for the same charge under the same provider key, and settles it.
. "$(dirname "$0")/lib.sh"
scenario "kill -9 in the middle of a payment: 409 until the lease ends, then one payment, one charge"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_visa"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider charges at once, and keeps its answer."
hold_answers
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "While api-1 runs, a retry at api-2 gets 409."
send early POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem early 409 idempotency_in_progress
expect_retry_after early

say "kill -9 api-1."
fault 'kill api-1' 'start api-1'
finish first
expect "status (000 is no answer at all)" "$(status first)" 000

looked=${EPOCHREALTIME/[.,]/}
lease_left=$(milliseconds_left "$key")
say "Nobody extends its lease any more. It ends in $lease_left ms. Until then api-2 answers 409."
retry_while 409 $((lease_left / 1000 + 5)) second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
waited=$(((${EPOCHREALTIME/[.,]/} - looked) / 1000))
[ "$lease_left" -lt 1000 ] || expect "it got 409 before" "$(answer_to test "$retries" -gt 0)" yes # or else the kill took most of it
expect "nothing took it over before the lease ended" "$(answer_to test "$waited" -ge "$lease_left")" yes
expect_settled second
expect "payment" "$(field second .status)" succeeded

say "One charge. The provider was asked twice for it."
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid

say "Start api-1 again. It returns the same answer."
heal
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
expect_charges "$order" "succeeded, attempts 2"
