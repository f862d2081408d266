#!/usr/bin/env bash
# When the store loses all records, every answer is still in PostgreSQL, where it was written in
# the transaction of its effect.
. "$(dirname "$0")/lib.sh"
scenario "All records lost: the same answers, from PostgreSQL"
shop
pay='{"method":{"type":"card","token":"tok_visa"}}'

say "Place an order and pay it."
send placed POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
expect_status placed 201
order=$(field placed .id)
send paid POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
expect_status paid 201

say "Delete everything that the store has."
lose_records
expect "records of these keys in the store" "$(count_records "*-$run")" 0

say "Send both again, to either replica."
send placed_again POST "$API1_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
expect_replay placed placed_again
send paid_again POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d "$pay"
expect_replay paid paid_again

say "Nothing was done a second time."
expect_orders 1
expect_stock 98
expect_charges "$order" "succeeded, attempts 1"

say "The records are back in the store. The next retry finds them there."
for key in "order-$run" "pay-$run"; do
  expect "records of $key in the store" "$(count_records "$key")" 1
done
record kept "pay-$run"
expect "status" "$(jq -r .status "$work/kept.record")" Completed
expect "kept body is the body sent, byte for byte" "$(answer_to cmp "$work/paid.body" "$work/kept.kept")" yes
