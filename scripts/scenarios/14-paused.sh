#!/usr/bin/env bash
# A replica may stop for longer than its lease and not know it: a paused machine,
# a long garbage collection. Another one has taken the payment over and finished
# it when the first wakes up in mid-air, with the provider's answer in its hands.
# It must not write a thing, and its own client must not hear a lie.
. "$(dirname "$0")/lib.sh"
scenario "A replica paused past its lease: its successor pays once, and it changes nothing when it wakes up"
shop
place_order
key=pay-$run
# Slower than the lease, so that the pause begins while the provider is being asked.
pay='{"method":{"type":"card","token":"tok_slow_'$((LEASE_SECONDS + 5))'s"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider charges at once, and answers later."
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "Stop api-1 in mid-air, with SIGSTOP. Its heartbeat stops, too."
fault 'pause api-1' 'resume api-1'
say "A retry at api-2 waits for the lease to end, takes the payment over and finishes it."
retry_while 409 $((LEASE_SECONDS + 10)) second POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect "it was told to wait, before" "$(answer_to test "$retries" -gt 0)" yes
expect_status second 201

say "Continue api-1. Its own client hears what was settled."
heal
finish first
expect_replay second first

say "Nothing has changed: one charge, for which the provider was asked twice."
expect_charges "$order" "succeeded, attempts 2"
expect_order "$order" paid
send again POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay second again
