#!/usr/bin/env bash
# A PUT that is sent again sets the stock again, and units that were sold meanwhile are for sale
# once more. A key, a condition or a relative change prevents that.
. "$(dirname "$0")/lib.sh"
scenario "The stock: a retry undoes no sale, and nobody overwrites what they have not seen"
shop
product=$BASE_URL/v1/products/$sku
full_stock='{"name":"Scenario shirt","price":{"amount":2500,"currency":"USD"},"stock":100}'

say "Set the stock, with a key. Then somebody orders two."
send put PUT "$API1_URL/v1/products/$sku" -H "Idempotency-Key: put-$run" -d "$full_stock"
expect_status put 200
place_order
expect_stock 98

say "The answer was lost, so the PUT is sent again, to the other replica. The sale stands."
send put_again PUT "$API2_URL/v1/products/$sku" -H "Idempotency-Key: put-$run" -d "$full_stock"
expect_replay put put_again
expect_stock 98

say "Add 10 units. The retry adds none."
send restock PATCH "$API1_URL/v1/products/$sku" -H "Idempotency-Key: restock-$run" -d '{"stock_change":10}'
expect_status restock 200
place_order
send restock_again PATCH "$API2_URL/v1/products/$sku" -H "Idempotency-Key: restock-$run" -d '{"stock_change":10}'
expect_replay restock restock_again
expect_stock 106

say "Read the product, and replace it unless it has changed. An order comes first: 412, and a retry gets it again."
send read GET "$product"
seen=$(header read ETag)
place_order
send lost PUT "$product" -H "Idempotency-Key: lost-$run" -H "If-Match: $seen" -d "$full_stock"
expect_problem lost 412 precondition_failed
send lost_again PUT "$product" -H "Idempotency-Key: lost-$run" -H "If-Match: $seen" -d "$full_stock"
expect_replay lost lost_again
expect_stock 104

say "Read again, decide again, with a new key."
send read_again GET "$product"
seen=$(header read_again ETag)
send put_new PUT "$product" -H "Idempotency-Key: new-$run" -H "If-Match: $seen" -d "$full_stock"
expect_status put_new 200
expect_stock 100

say "The condition is part of the request: the same key with another one is another request."
send other PUT "$product" -H "Idempotency-Key: new-$run" -d "$full_stock"
expect_problem other 422 idempotency_key_reused

say "What is not there cannot be taken, and nothing is created over what is there."
send take PATCH "$product" -H "Idempotency-Key: take-$run" -d '{"stock_change":-101}'
expect_problem take 409 out_of_stock
send create PUT "$product" -H 'If-None-Match: *' -d "$full_stock"
expect_problem create 412 precondition_failed
expect_stock 100
