#!/usr/bin/env bash
# A request that changes something needs a key. A missing or malformed key is refused before
# anything is done.
. "$(dirname "$0")/lib.sh"
scenario "No key, or a malformed one: 400, and nothing is done"
shop

say "Without a key."
send missing POST "$BASE_URL/v1/orders" -d "$cart"
expect_problem missing 400 idempotency_key_missing
expect "error" "$(field missing .error)" "Idempotency-Key header is required"

say "With a key of 256 characters; 255 is the most."
longest=$run$(printf '%0*d' $((255 - ${#run})) 0 | tr 0 x)
send long POST "$BASE_URL/v1/orders" -H "Idempotency-Key: ${longest}x" -d "$cart"
expect_problem long 400 idempotency_key_too_long
expect "error" "$(field long .error)" "Idempotency-Key must not exceed 255 characters"

say "With an empty key."
send empty POST "$BASE_URL/v1/orders" -H "Idempotency-Key;" -d "$cart"
expect_problem empty 400 idempotency_key_malformed

say "With two keys."
send twice POST "$BASE_URL/v1/orders" -H "Idempotency-Key: bad-1-$run" -H "Idempotency-Key: bad-2-$run" -d "$cart"
expect_problem twice 400 idempotency_key_malformed

say "With a control character in it: a tab."
send control POST "$BASE_URL/v1/orders" -H "Idempotency-Key: bad-3"$'\t'"$run" -d "$cart"
expect_problem control 400 idempotency_key_malformed

say "The body is validated before the key is acquired: a bad request leaves the key free."
send unknown POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d '{"customer_id":"'"$customer"'","itemz":[]}'
expect "status" "$(status unknown)" 400

say "None of these had an effect, and no key was used up."
expect_orders 0
expect_stock 100
expect "records in the store: only the one of the customer" "$(count_records "*$run*")" 1

say "The longest key works, and so does the key of the bad request."
send good POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $longest" -d "$cart"
expect_status good 201
send corrected POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
expect_status corrected 201
expect_orders 2
