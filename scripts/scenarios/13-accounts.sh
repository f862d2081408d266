#!/usr/bin/env bash
# A key means nothing outside the account that sent it. Two accounts that choose the same key do
# not meet.
. "$(dirname "$0")/lib.sh"
scenario "Another account with the same key: an effect of its own, and no sight of the first"
shop
key=order-$run

say "The first account places an order."
send mine POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_status mine 201
my_order=$(field mine .id) my_customer=$customer my_cart=$cart my_key=$API_KEY

say "The second account sends exactly the same request. It has no such customer, and does not see the answer."
API_KEY=$OTHER_API_KEY
send same POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$my_cart"
expect "status" "$(status same)" 404
expect "X-Idempotent-Replay" "$(header same X-Idempotent-Replay)" ''
expect "it names the first account's order" "$(answer_to grep -q "$my_order" "$work/same.body")" no

say "It places an order of its own, for its own customer, under that key."
shop
send theirs POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_status theirs 201
expect "it is another order" "$(answer_to test "$(field theirs .id)" != "$my_order")" yes
send theirs_again POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_replay theirs theirs_again
expect_orders 1
expect_stock 98

say "It cannot see what the first account has."
for path in "orders/$my_order" "customers/$my_customer"; do
  send peek GET "$BASE_URL/v1/$path"
  expect "status" "$(status peek)" 404
done

say "The first account gets the same answer as before, and has one order."
API_KEY=$my_key customer=$my_customer
send again POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$my_cart"
expect_replay mine again
expect_orders 1
expect_stock 98
expect "records of the key in the store, one for each account" "$(count_records "$key")" 2
