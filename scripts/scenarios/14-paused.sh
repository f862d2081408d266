#!/usr/bin/env bash
# A replica can stop for longer than its lease without noticing: a paused machine, a long garbage
# collection. Another replica has taken the payment over and settled it when the first one
# resumes, with the provider's answer. It must not write anything, and its client must get the
# settled answer.
. "$(dirname "$0")/lib.sh"
scenario "A replica is paused past its lease: another one settles the payment, and the first one, resumed, changes nothing"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_visa"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider charges at once, and keeps its answer."
hold_answers
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "Pause api-1 with SIGSTOP. Its heartbeat stops, too."
fault 'pause api-1' 'resume api-1'
say "A retry at api-2 gets 409 until the lease ends, then takes the payment over and settles it."
looked=${EPOCHREALTIME/[.,]/}
lease_left=$(milliseconds_left "$key")
retry_while 409 $((LEASE_SECONDS + 10)) second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
waited=$(((${EPOCHREALTIME/[.,]/} - looked) / 1000))
[ "$lease_left" -lt 1000 ] || expect "it got 409 before" "$(answer_to test "$retries" -gt 0)" yes # or else the pause took most of it
expect "nothing took it over before the lease ended" "$(answer_to test "$waited" -ge "$lease_left")" yes
expect_settled second

say "The provider answers. Resume api-1. Its own client gets the settled answer."
release_answers
heal
finish first
expect_replay second first

say "Nothing has changed: one charge. The provider was asked twice for it."
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
