#!/usr/bin/env bash
# A change that may be made twice, if nobody else makes another one in between, accepts a key and
# does not require one.
. "$(dirname "$0")/lib.sh"
scenario "The key is optional: without one the change is made each time, with one it is made once"
shop
url=$BASE_URL/v1/customers/$customer

say "Rename the customer twice without a key: it is done each time."
send bare PATCH "$url" -d '{"name":"Ada King"}'
expect_status bare 200
send bare_again PATCH "$url" -d '{"name":"Ada King"}'
expect_status bare_again 200

say "With a key."
send keyed PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Countess of Lovelace"}'
expect_status keyed 200

say "Somebody else renames her meanwhile. A late retry with the key does not undo that."
send meanwhile PATCH "$url" -d '{"name":"Ada Byron"}'
expect_status meanwhile 200
send late PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Countess of Lovelace"}'
expect_replay keyed late
send read GET "$url"
expect "name" "$(field read .name)" "Ada Byron"

say "A key that is sent counts: another body is 422."
send other PATCH "$url" -H "Idempotency-Key: rename-$run" -d '{"name":"Lord Byron"}'
expect_problem other 422 idempotency_key_reused

say "PUT needs no key either: the second one replaces what the first one created."
product='{"name":"Scenario poster","price":{"amount":900,"currency":"USD"},"stock":5}'
send created PUT "$BASE_URL/v1/products/poster-$run" -d "$product"
expect_status created 201
send replaced PUT "$BASE_URL/v1/products/poster-$run" -d "$product"
expect_status replaced 200
expect "stock" "$(field replaced .stock)" 5
