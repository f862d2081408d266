#!/usr/bin/env bash
# Without Redis no replica can quickly tell whether a payment is already in progress, so payments
# get 503 (fail closed). For an order PostgreSQL alone decides, and it is placed once (fail open).
# If the records are kept in PostgreSQL, nothing changes.
. "$(dirname "$0")/lib.sh"
case $IDEMPOTENCY_STORE in
  redis) scenario "Redis down: payments get 503 and nothing is charged; orders continue, once each" ;;
  postgres) scenario "Redis down, with the records in PostgreSQL: payments and orders continue, once each" ;;
esac
shop
place_order
unpaid=$order
pay='{"method":{"type":"card","token":"tok_visa"}}'

say "Stop Redis."
fault 'stop redis' 'start redis'
expect "Redis answers" "$(answer_to redis PING)" no

if [ "$IDEMPOTENCY_STORE" = redis ]; then
  say "A payment: 503, to be sent again with the same key."
  send refused POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
  expect_problem refused 503 idempotency_store_unavailable
  expect_retry_after refused
  expect_charges "$unpaid" none
  expect_order "$unpaid" pending
else
  say "A payment: 201."
  send unrefused POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
  expect_status unrefused 201
fi

say "An order at one replica, and the same request at the other."
send placed POST "$API1_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_status placed 201
send again POST "$API2_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_replay placed again
expect_orders 2
expect_stock 96

say "The same key with another body is still refused."
send other POST "$API2_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "${cart/\"quantity\":2/\"quantity\":3}"
expect_problem other 422 idempotency_key_reused

say "Start Redis. The payment, sent again with its key, gets its answer."
heal
retry_while 503 30 paid POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
if [ "$IDEMPOTENCY_STORE" = redis ]; then expect_status paid 201; else expect_replay unrefused paid; fi
expect_charges "$unpaid" "succeeded, attempts 1"
expect_order "$unpaid" paid

say "What was done meanwhile is still known."
send later POST "$BASE_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_replay placed later
expect_orders 2
expect_stock 96
