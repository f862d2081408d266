#!/usr/bin/env bash
# Redis replicates asynchronously. When the primary dies, Sentinel promotes its replica, and the
# writes that had not been copied are lost. Every answer is still in PostgreSQL. Sentinel needs a
# stack of its own, which this scenario starts.
here=$(cd "$(dirname "$0")" && pwd)
[ "${STACK_REDIS:-}" = sentinel ] || exec env -u STACK STACK_REDIS=sentinel STACK_DRIVER=native STACK_DIR=.stack-sentinel \
  PORT_OFFSET="$((${PORT_OFFSET:-6000} + 900))" IDEMPOTENCY_STORE=redis LEASE_SECONDS=3 "$here/../with-stack.sh" "$here/$(basename "$0")"
. "$here/lib.sh"
scenario "Sentinel failover with lost writes: the same answers, one charge, and service within seconds"

# server ROLE: the address of the Redis that is the master or the replica, by what Sentinel says.
server() { $STACK status | awk -v role="$1" '$NF == role { print $2 }'; }
appointed() { [ "$(server master)" = "$replica" ]; }
charged() { probe "$PSP_URL/v1/charges?reference=$slow_order" | jq -e '.data | length == 1'; }

shop
primary=$(server master) replica=$(server replica)
REDIS_ADDR=$primary
pay='{"method":{"type":"card","token":"tok_visa"}}'
slow_pay='{"method":{"type":"card","token":"tok_slow_'$((LEASE_SECONDS + 5))'s"}}'
place_order
paid_order=$order
place_order
slow_order=$order

# Sentinel promotes no replica whose link has been down for ten times down-after-milliseconds, here
# ten seconds. So all requests of this step are sent at once.
say "The replica falls behind."
stack 'partition redis-replica redis'

say "Place an order, and pay another one. Their records are only in the primary. A slow payment runs at api-1."
start placed POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
start paid POST "$BASE_URL/v1/orders/$paid_order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
start slow POST "$API1_URL/v1/orders/$slow_order/payments" -H "Idempotency-Key: slow-$run" -d "$slow_pay"
finish placed
expect_status placed 201
finish paid
expect_status paid 201
wait_until "the provider has charged the card of the slow one" charged
expect "records in the primary" "$(count_records "order-$run") and $(count_records "pay-$run")" "1 and 1"

say "Kill the primary."
fault 'kill redis' 'start redis'
began=$SECONDS
wait_until "Sentinel has promoted the replica" appointed
REDIS_ADDR=$replica
expect "records of the order and the payment that it has" "$(count_records "order-$run") and $(count_records "pay-$run")" "0 and 0"

say "The running payment has lost its lease with the primary. A retry at api-2 finds its key free."
start slow_again POST "$API2_URL/v1/orders/$slow_order/payments" -H "Idempotency-Key: slow-$run" -d "$slow_pay"

say "New keys work again."
place_order
retry_while 503 10 fresh POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: fresh-$run" -d "$pay"
expect_status fresh 201
expect "within 15 s of the kill" "$(answer_to test $((SECONDS - began)) -le 15)" yes

say "Send those whose records were lost again, to either replica: the same answers."
send placed_again POST "$API1_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
expect_replay placed placed_again
send paid_again POST "$API2_URL/v1/orders/$paid_order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
expect_replay paid paid_again

say "With another body they are refused."
send other POST "$API2_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "${cart/\"quantity\":2/\"quantity\":3}"
expect_problem other 422 idempotency_key_reused

say "The answers to both copies of the running payment, and to a further retry."
finish slow
finish slow_again
retry_while 409 20 settled POST "$BASE_URL/v1/orders/$slow_order/payments" -H "Idempotency-Key: slow-$run" -d "$slow_pay"
expect "status" "$(status settled)" 201
for told in slow slow_again; do
  case $(status "$told") in
    201) expect "the same answer" "$(answer_to cmp "$work/$told.body" "$work/settled.body")" yes ;;
    *) expect "not refused, but to be tried again" "$(answer_to grep -E '409|503' "$work/$told.status")" yes ;;
  esac
done

say "Nothing was done twice."
expect_orders 4
expect_stock 92
for order in "$paid_order" "$slow_order" "$order"; do
  expect "successful charges of $order" "$(probe "$PSP_URL/v1/charges?reference=$order" | jq '[.data[] | select(.status == "succeeded")] | length')" 1
  expect_order "$order" paid
done

say "Start the old primary. It becomes the replica of the new one."
stack 'heal redis-replica redis'
heal
expect "master" "$(server master)" "$replica"
expect "replica" "$(server replica)" "$primary"
