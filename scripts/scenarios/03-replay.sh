#!/usr/bin/env bash
# The answer was lost, so the client sends the request again. It gets the first answer byte for
# byte, from any replica.
. "$(dirname "$0")/lib.sh"
scenario "The same request again: the same answer byte for byte, from either replica"
shop

say "Place an order at api-1."
key=order-$run
send first POST "$API1_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_status first 201

say "Again, at api-2."
send again POST "$API2_URL/v1/orders" -H "Idempotency-Key: $key" -d "$cart"
expect_replay first again
expect "served by the other replica" "$(answer_to test "$(header first X-Served-By)" != "$(header again X-Served-By)")" yes

say "Again, through nginx, with the key in quotes, which is the same key (RFC 9651)."
send quoted POST "$BASE_URL/v1/orders" -H "Idempotency-Key: \"$key\"" -d "$cart"
expect_replay first quoted

say "The same for a payment."
order=$(field first .id)
send paid POST "$API2_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d '{"method":{"type":"card","token":"tok_visa"}}'
expect_status paid 201
send repaid POST "$API1_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d '{"method":{"type":"card","token":"tok_visa"}}'
expect_replay paid repaid

say "Everything happened once."
expect_orders 1
expect_stock 98
expect_charges "$order" "succeeded, attempts 1"
expect_order "$order" paid
