#!/usr/bin/env bash
# An impatient client, or a proxy, sends a payment twice before the first copy is answered. The
# copies reach different replicas. One of them is executed.
. "$(dirname "$0")/lib.sh"
scenario "The same key at both replicas at the same time: one 201, one 409, one charge"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_slow_2s"}}'

say "Pay at api-1 and at api-2 at the same moment. The provider takes 2 seconds, so they overlap."
start one POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
start two POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
winner=one loser=two
finish one
finish two
[ "$(status one)" = 201 ] || winner=two loser=one
expect_status "$winner" 201
expect_problem "$loser" 409 idempotency_in_progress
expect_retry_after "$loser"
expect "error" "$(field "$loser" .error)" "A request with this idempotency key is already being processed. Retry after the original request completes."

say "The request that got 409 is sent again, to either replica, and gets the answer of the other."
send again1 POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay "$winner" again1
send again2 POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_replay "$winner" again2

say "The card was charged once, and the provider was asked once."
expect_charges "$order" "succeeded, attempts 1"
expect_order "$order" paid
