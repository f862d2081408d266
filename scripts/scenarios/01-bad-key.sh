#!/usr/bin/env bash
# A POST that moves money or stock must name itself. What isn't a usable name is
# refused before anything is done, and nothing is remembered of it.
. "$(dirname "$0")/lib.sh"
scenario "No key, or a bad one: 400, and nothing is done"
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

say "With two keys: which of them would it be?"
send twice POST "$BASE_URL/v1/orders" -H "Idempotency-Key: bad-1-$run" -H "Idempotency-Key: bad-2-$run" -d "$cart"
expect_problem twice 400 idempotency_key_malformed

say "With a control character in it, a tab."
send control POST "$BASE_URL/v1/orders" -H "Idempotency-Key: bad-3"$'\t'"$run" -d "$cart"
expect_problem control 400 idempotency_key_malformed

say "The body is judged before the key is taken: a bad request leaves the key free."
send unknown POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d '{"customer_id":"'"$customer"'","itemz":[]}'
expect "status" "$(status unknown)" 400

say "None of these had an effect, and no key was burned."
expect_orders 0
expect_stock 100
expect "records in the store: only that of setting up the customer" "$(count_records "*$run*")" 1

say "With the longest key, and with the key of the bad request: both are good."
send good POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $longest" -d "$cart"
expect_status good 201
send corrected POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" -d "$cart"
expect_status corrected 201
expect_orders 2
