#!/usr/bin/env bash
# A change that may safely be made twice doesn't insist on a key, but takes one.
# Reading and replacing (GET, PUT) are idempotent by nature and need none.
. "$(dirname "$0")/lib.sh"
scenario "Where the key is optional: without one it is done, with one it is done once"
shop
url=$BASE_URL/v1/customers/$customer

say "Rename the customer without a key, twice: done each time."
send bare PATCH "$url" -d '{"name":"Ada King"}'
expect_status bare 200
send bare_again PATCH "$url" -d '{"name":"Ada King"}'
expect_status bare_again 200

say "With a key."
send keyed PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Countess of Lovelace"}'
expect_status keyed 200

say "Somebody else renames her meanwhile. A late retry of the keyed change doesn't undo that."
send meanwhile PATCH "$url" -d '{"name":"Ada Byron"}'
expect_status meanwhile 200
send late PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Countess of Lovelace"}'
expect_replay keyed late
send read GET "$url"
expect "name" "$(field read .name)" "Ada Byron"

say "A key that is sent is taken seriously: another body is a 422."
send other PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Lord Byron"}'
expect_problem other 422 idempotency_key_reused

say "PUT needs no key: the second time finds what the first has made."
product='{"name":"Scenario poster","price":{"amount":900,"currency":"USD"},"stock":5}'
send created PUT "$BASE_URL/v1/products/poster-$run" -d "$product"
expect_status created 201
send replaced PUT "$BASE_URL/v1/products/poster-$run" -d "$product"
expect_status replaced 200
expect "stock" "$(field replaced .stock)" 5
