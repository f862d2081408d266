#!/usr/bin/env bash
# The double charge that does not happen, in half a minute: a replica is killed after the provider has
# charged the card and before anybody has stored it. The retry with the same key finds the charge.
# Runs against the stack that these variables name; docs/images/demo.svg is a recording of it (task recording).
set -euo pipefail
: "${BASE_URL:=http://127.0.0.1:8080}" "${API1_URL:=http://127.0.0.1:8081}" "${API2_URL:=http://127.0.0.1:8082}"
: "${PSP_URL:=http://127.0.0.1:8090}" "${STACK:=go run ./cmd/stack}"

run=$RANDOM$RANDOM
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# paint COLOUR TEXT: blue (34), green (32) or grey (37) in a terminal.
paint() { if [ -t 1 ]; then printf '\e[%dm%s\e[0m\n' "$@"; else printf '%s\n' "$2"; fi; }
show() { paint 34 "\$ $*"; }
api() { curl -sS --max-time 60 -H 'Authorization: Bearer sk_test_demo' -H 'Content-Type: application/json' "$@"; }
pay() {
  api -o "$answer" -w '%{http_code}' "$1/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" \
    -d '{"method":{"type":"card","token":"tok_slow_6s"}}'
}
charges() { curl -sS "$PSP_URL/v1/charges?reference=$order"; }
show_charges() {
  show "charges of the order, in the provider's own books"
  charges | jq -r '"  \(.data | length) charge: $\(.data[0].amount / 100), \(.data[0].status)"'
}

customer=$(api "$BASE_URL/v1/customers" -H "Idempotency-Key: customer-$run" \
  -d '{"name":"Ada","email":"ada-'"$run"'@example.com"}' | jq -r .id)
order=$(api "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$run" \
  -d '{"customer_id":"'"$customer"'","items":[{"sku":"tee-black","quantity":2}]}' | jq -r .id)

show "pay $(api "$BASE_URL/v1/orders/$order" | jq -r '.total.amount / 100 | "$\(.)"') at api-1, Idempotency-Key: pay-1   &"
pay "$API1_URL" >/dev/null 2>&1 &
first=$!
until [ "$(charges | jq '.data | length')" = 1 ]; do sleep 0.1; done
paint 37 '# the card is charged; api-1 does not know it yet'
show 'stack kill api-1'
$STACK kill api-1 >/dev/null
wait "$first" || true
echo '  no answer: the connection was closed'
show_charges

show 'pay again at api-2, Idempotency-Key: pay-1'
until [ "$(pay "$API2_URL")" = 201 ]; do
  jq -r '"  \(.status) \(.code)"' "$answer"
  sleep 2
done
jq -r '"  201 \(.status)"' "$answer"
show_charges
[ "$(charges | jq '.data | length')" = 1 ]
paint 32 '✓ one key, one charge'
$STACK start api-1 >/dev/null
