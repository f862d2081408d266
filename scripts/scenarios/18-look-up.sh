#!/usr/bin/env bash
# What became of a request can be asked without sending it again: by a support desk, or by a
# nightly check.
. "$(dirname "$0")/lib.sh"
scenario "What became of a key: in progress, completed or failed; also when Redis has lost it"
shop
place_order
# Any character that a key may have, percent-encoded in the path.
key="look/up $run 100%"
url=$BASE_URL/v1/idempotency-keys/look%2Fup%20$run%20100%25
charged() { probe "$PSP_URL/v1/charges?reference=$order" | jq -e '.data | length == 1'; }

say "Nothing is known of the key yet."
send before GET "$url"
expect_problem before 404 idempotency_key_not_found

say "While a payment runs, its key is in progress, and names the payment."
start paid POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d '{"method":{"type":"card","token":"tok_slow_8s"}}'
wait_until "the provider has charged the card" charged
send during GET "$url"
expect "status" "$(status during)" 200
expect "state" "$(field during .state)" in_progress
expect "operation" "$(field during .operation)" pay_order
send payment GET "$BASE_URL$(field during .resource)"
expect "payment" "$(field payment .status)" processing

say "Then it is completed."
finish paid
expect_status paid 201
send after GET "$url"
expect "key" "$(field after .key)" "$key"
expect "state" "$(field after .state)" completed
expect "status of the answer" "$(field after .response_status)" 201
expect "resource, as the answer said" "$(field after .resource)" "$(header paid Location)"
expect "it says how long the answer is kept" "$(field after '.expires_at > .completed_at and .completed_at > .created_at')" true

say "The store loses everything. The answer is the same."
lose_records
send flushed GET "$url"
expect "the same is known" "$(answer_to cmp "$work/after.body" "$work/flushed.body")" yes

say "A final 4xx is kept as well."
place_order
send declined POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: no-$run" -d '{"method":{"type":"card","token":"tok_declined"}}'
expect_problem declined 402 payment_declined
send failed GET "$BASE_URL/v1/idempotency-keys/no-$run"
expect "state" "$(field failed .state)" failed
expect "status of the answer" "$(field failed .response_status)" 402

say "To another account the key means nothing."
API_KEY=$OTHER_API_KEY send other GET "$url"
expect_problem other 404 idempotency_key_not_found
