#!/usr/bin/env bash
# Checks the service as it checks any other: oncecheck on a top-up, and what needs a second account
# on a new customer. Run it by with-stack.sh.
#
#   scripts/with-stack.sh scripts/oncecheck.sh [FLAG OF ONCECHECK…]
set -euo pipefail
cd "$(dirname "$0")/.."

api=${BASE_URL:-http://127.0.0.1:8080}/v1
mine='Authorization: Bearer sk_test_demo' other='Authorization: Bearer sk_test_other'
run=$RANDOM$RANDOM

# customer NAME: creates one, and prints its ID.
customer() {
  curl -sSf -H "$mine" -H 'Content-Type: application/json' -H "Idempotency-Key: oncecheck-$run-$1" \
    -d '{"name":"Ada","email":"oncecheck-'"$run-$1"'@example.com"}' "$api/customers" | jq -r .id
}
one=$(customer one) two=$(customer two)

go build -o bin/ ./cmd/oncecheck
bin/oncecheck "$@" --only "$(bin/oncecheck --rules | awk '$1 != "other-caller" { print $1 }' | paste -sd,)" \
  --count "$api/customers/$one/wallet#balance.amount" --other-url "$api/customers/$two/top-ups" \
  ${STACK:+--between "$STACK flush redis"} \
  --server "$api" --parameter "customer_id=$one" -H "$mine" -d '{"amount":{"amount":1,"currency":"USD"}}' api/openapi.yaml#createTopUp
bin/oncecheck "$@" --only other-caller --other-header "$other" \
  -H "$mine" -d '{"name":"Ada","email":"oncecheck-{{unique}}@example.com"}' "$api/customers"
