#!/usr/bin/env bash
# Without Redis, nobody can quickly tell whether a payment is already under way,
# so payments wait (fail closed). An order needs no quick decision: PostgreSQL
# decides alone, and it is placed once (fail open). Where the records are kept
# in PostgreSQL, nobody misses Redis.
. "$(dirname "$0")/lib.sh"
case $IDEMPOTENCY_STORE in
  redis) scenario "Redis down: payments 503 and nothing charged, orders go on, still once each" ;;
  postgres) scenario "Redis down: payments and orders go on, once each, with the records in PostgreSQL" ;;
esac
shop
place_order
unpaid=$order
pay='{"method":{"type":"card","token":"tok_visa"}}'

say "Stop Redis."
fault 'stop redis' 'start redis'
expect "Redis answers" "$(answer_to redis PING)" no

if [ "$IDEMPOTENCY_STORE" = redis ]; then
  say "A payment: not now, come back later with the same key."
  send refused POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
  expect_problem refused 503 idempotency_store_unavailable
  expect_retry_after refused
  expect_charges "$unpaid" none
  expect_order "$unpaid" pending
else
  say "A payment: it goes through."
  send unrefused POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
  expect_status unrefused 201
fi

say "An order, through one replica and then again through the other."
send placed POST "$API1_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_status placed 201
send again POST "$API2_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_replay placed again
expect_orders 2
expect_stock 96

say "And the same key with another body is still refused."
send other POST "$API2_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "${cart/\"quantity\":2/\"quantity\":3}"
expect_problem other 422 idempotency_key_reused

say "Start Redis. The payment, sent again with its key, has its answer."
heal
retry_while 503 30 paid POST "$BASE_URL/v1/orders/$unpaid/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
if [ "$IDEMPOTENCY_STORE" = redis ]; then expect_status paid 201; else expect_replay unrefused paid; fi
expect_charges "$unpaid" "succeeded, attempts 1"
expect_order "$unpaid" paid

say "What was done meanwhile is known on."
send later POST "$BASE_URL/v1/orders" -H "Idempotency-Key: down-$run" -d "$cart"
expect_replay placed later
expect_orders 2
expect_stock 96
