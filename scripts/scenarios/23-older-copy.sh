#!/usr/bin/env bash
# nginx passes a request on to the other replica when one does not answer. The first copy still waits
# in the socket of the replica that is paused. If the second copy was refused, the client knows that
# nothing was done, so the first copy must not be executed later.
. "$(dirname "$0")/lib.sh"
scenario "A refused request stays refused: its older copy does nothing when the paused replica resumes"
shop
new=new-$run
order='{"customer_id":"'$customer'","items":[{"sku":"'$new'","quantity":1}]}'

say "Pause api-1. Send six orders of an unknown product. nginx passes those of api-1 on to api-2."
fault 'pause api-1' 'resume api-1'
for i in 1 2 3 4 5 6; do
  quietly start "order$i" POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$i-$run" -d "$order"
done
for i in 1 2 3 4 5 6; do
  quietly finish "order$i"
  expect_problem "order$i" 422 unknown_product
done

say "Now the product is created, and api-1 resumes with its copies."
quietly send product PUT "$BASE_URL/v1/products/$new" \
  -d '{"name":"New","price":{"amount":100,"currency":"USD"},"stock":100}'
heal
sku=$new
expect_orders 0
expect_stock 100

say "The same request, sent again with its key, is executed. So is a corrected one."
send again POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-1-$run" -d "$order"
expect_status again 201
send corrected POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-2-$run" \
  -d '{"customer_id":"'"$customer"'","items":[{"sku":"'"$new"'","quantity":3}]}'
expect_status corrected 201
expect_orders 2
expect_stock 96
