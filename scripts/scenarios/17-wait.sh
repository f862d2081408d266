#!/usr/bin/env bash
# Instead of getting 409 and asking again, a client can say how long it is willing to wait, with
# the header Prefer (RFC 7240). It gets the answer of the request in progress as soon as there is
# one.
. "$(dirname "$0")/lib.sh"
scenario "Prefer: wait=N waits for the answer, across replicas; after N seconds 409"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_slow_8s"}}'
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Pay at api-1. The provider takes 8 seconds."
start first POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait_until "the provider has charged the card" charged

say "The same at api-2, with Prefer: wait=20."
start patient POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=20' -d "$pay"

say "Another request with the key may wait, too: if the first one is refused, the key is free."
start other POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=20' -d '{"method":{"type":"wallet"}}'

say "And the first one once more, with Prefer: wait=1: 409."
send hasty POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -H 'Prefer: wait=1' -d "$pay"
expect_problem hasty 409 idempotency_in_progress
expect_retry_after hasty
expect "Preference-Applied" "$(header hasty Preference-Applied)" wait=1

say "The request that waited gets the answer of the first."
finish first
expect_status first 201
finish patient
expect_replay first patient
expect "Preference-Applied" "$(header patient Preference-Applied)" wait=20

say "The other request learns that the key is not free: 422."
finish other
expect_problem other 422 idempotency_key_reused
expect_charges "$order" "succeeded, attempts 1"
