#!/usr/bin/env bash
# A key names one request. Another request with the same key is a mistake of the client, and gets
# 422 once the first one is answered.
. "$(dirname "$0")/lib.sh"
scenario "The same key with another body, or at another path: 422"
shop
key=order-$run
reused="Idempotency key has already been used with a different request payload."

say "Place an order of two."
send first POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_status first 201

say "The same key, but an order of three."
send other POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "${cart/\"quantity\":2/\"quantity\":3}"
expect_problem other 422 idempotency_key_reused
expect "error" "$(field other .error)" "$reused"

say "The same key, but at another path: the payment of that order."
order=$(field first .id)
pay='{"method":{"type":"card","token":"tok_visa"}}'
send path POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect_problem path 422 idempotency_key_reused

say "The same key and body, but for another order's payment."
place_order
send paid POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
expect_status paid 201
first_order=$(field first .id)
send elsewhere POST "$BASE_URL/v1/orders/$first_order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
expect_problem elsewhere 422 idempotency_key_reused

say "While the first request still runs, nothing is decided: 409. It may still be refused, which frees its key."
place_order
start slow POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: slow-$run" -d '{"method":{"type":"card","token":"tok_slow_6s"}}'
held() { records "slow-$run" | grep -q .; }
wait_until "api-1 holds the key" held
send early POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: slow-$run" -d "$pay"
expect_problem early 409 idempotency_in_progress
expect_retry_after early
finish slow
expect_status slow 201
send late POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: slow-$run" -d "$pay"
expect_problem late 422 idempotency_key_reused

say "None of the wrong requests had an effect. The right one still gets its answer."
send again POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_replay first again
expect_orders 3
expect_stock 94
expect_charges "$first_order" none
expect_charges "$order" "succeeded, attempts 1"
