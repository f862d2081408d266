#!/usr/bin/env bash
# Being told 409 and asking again is a nuisance. A client can say for how long it
# is willing to wait instead, with the header Prefer (RFC 7240), and gets the
# answer of the request that is under way as soon as there is one.
. "$(dirname "$0")/lib.sh"
scenario "Prefer: wait=N instead of 409, across replicas; at the end of its patience 409"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_slow_4s"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider takes 4 seconds."
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "The same at api-2, willing to wait for 20 seconds."
start patient POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=20' -d "$pay"

say "And once more, willing to wait for one: 409."
send hasty POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=1' -d "$pay"
expect_problem hasty 409 idempotency_in_progress
expect_retry_after hasty
expect "Preference-Applied" "$(header hasty Preference-Applied)" wait=1

say "Who waited gets the answer of the first."
finish first
expect_status first 201
finish patient
expect_replay first patient
expect "Preference-Applied" "$(header patient Preference-Applied)" wait=20

say "Another request doesn't wait for anything: 422."
send other POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=20' -d '{"method":{"type":"wallet"}}'
expect_problem other 422 idempotency_key_reused
expect_charges "$order" "succeeded, attempts 1"
