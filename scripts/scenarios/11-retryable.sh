#!/usr/bin/env bash
# Some failures can be corrected, for example an e-mail address that is taken. No change was made,
# the key is free again, and the corrected request may use it.
. "$(dirname "$0")/lib.sh"
scenario "A failure that can be corrected releases the key"
shop
taken=$(field customer .email)
key=customer-2-$run

say "A second customer with the first one's e-mail address."
send duplicate POST "$BASE_URL/v1/customers" -H "Idempotency-Key: $key" -d '{"name":"Grace Hopper","email":"'"$taken"'"}'
expect_problem duplicate 409 email_taken
expect "records of the key in the store" "$(count_records "$key")" 0

say "Unchanged, it fails again, and this is no replay."
send unchanged POST "$BASE_URL/v1/customers" -H "Idempotency-Key: $key" -d '{"name":"Grace Hopper","email":"'"$taken"'"}'
expect_problem unchanged 409 email_taken
expect "X-Idempotent-Replay" "$(header unchanged X-Idempotent-Replay)" ''

say "Corrected, under the same key."
send corrected POST "$BASE_URL/v1/customers" -H "Idempotency-Key: $key" -d '{"name":"Grace Hopper","email":"grace-'"$run"'@example.com"}'
expect_status corrected 201
send read GET "$BASE_URL/v1/customers/$(field corrected .id)"
expect "status" "$(status read)" 200

say "From now on the key belongs to that request."
send again POST "$BASE_URL/v1/customers" -H "Idempotency-Key: $key" -d '{"name":"Grace Hopper","email":"grace-'"$run"'@example.com"}'
expect_replay corrected again
send late POST "$BASE_URL/v1/customers" -H "Idempotency-Key: $key" -d '{"name":"Grace Hopper","email":"'"$taken"'"}'
expect_problem late 422 idempotency_key_reused
