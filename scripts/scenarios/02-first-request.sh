#!/usr/bin/env bash
# The first request with a key is executed. Its answer is kept in PostgreSQL, which decides
# finally, and in the store, which decides quickly.
. "$(dirname "$0")/lib.sh"
scenario "The first request: 201, and a record in the store"
shop

say "Place an order under a new key."
key=order-$run
send first POST "$BASE_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_status first 201
expect "Location" "$(header first Location)" "/v1/orders/$(field first .id)"
expect "total" "$(field first '"\(.total.amount) \(.total.currency)"')" "5000 USD"

say "Its effect: one order, and the stock is lower by two."
expect_order "$(field first .id)" pending
expect_orders 1
expect_stock 98

say "The record: readable metadata, and the body as it was sent."
expect "records in the store" "$(count_records "$key")" 1
record kept "$key"
meta() { jq -r "$1" "$work/kept.record"; }
expect "key" "$(meta .key)" "$key"
expect "status" "$(meta .status)" Completed
expect "responseStatusCode" "$(meta .responseStatusCode)" 201
expect "requestFingerprint is a SHA-256" "$(meta .requestFingerprint | grep -cE '^[0-9a-f]{64}$')" 1
expect "kept body is the body sent, byte for byte" "$(answer_to cmp "$work/first.body" "$work/kept.kept")" yes

say "It expires by itself. The store and the record agree on the time."
seconds_left=$(($(milliseconds_left "$key") / 1000))
by_record=$(meta '.expiresAt | sub("\\.[0-9]+"; "") | fromdateiso8601 - now | floor')
echo "  the store: $seconds_left s, the record: $by_record s"
expect "they differ by less than 5 s" "$(answer_to test $((seconds_left - by_record + 5)) -lt 10 -a $((by_record - seconds_left + 5)) -lt 10)" yes
