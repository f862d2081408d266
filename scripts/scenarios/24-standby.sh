#!/usr/bin/env bash
# A standby of PostgreSQL applies each commit before it is answered (synchronous_commit=remote_apply).
# When the primary dies, the standby is promoted, and has every answer that a client has seen. The pair
# needs a stack of its own, which this scenario starts.
here=$(cd "$(dirname "$0")" && pwd)
[ "${STACK_POSTGRES:-}" = sync-standby ] || exec env -u STACK STACK_POSTGRES=sync-standby STACK_DRIVER=native STACK_DIR=.stack-standby \
  PORT_OFFSET="$((${PORT_OFFSET:-6000} + 1400))" IDEMPOTENCY_STORE=redis LEASE_SECONDS=3 "$here/../with-stack.sh" "$here/$(basename "$0")"
. "$here/lib.sh"
scenario "PostgreSQL fails over while orders are placed: every answer that a client saw is kept, and nothing is done twice"

orders=20
# server ROLE: the PostgreSQL that has a role, if it is ready.
server() { $STACK status | awk -v role="$1" '$NF == role && $3 == "ready" { print $1 }'; }
request() {
  curl -sS --max-time "$answer_seconds" -D "$work/$2.headers" -o "$work/$2.body" -w '%{http_code}' "$BASE_URL/v1/orders" -d "$cart" \
    -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: order-$1-$run" 2>/dev/null || true
}
# place N: an order, sent again with its key until it is answered.
place() {
  local deadline=$((SECONDS + answer_seconds))
  until [ "$(request "$1" "placed-$1")" = 201 ] || [ "$SECONDS" -ge "$deadline" ]; do sleep "$poll_seconds"; done
  touch "$work/placed-$1"
}
placed() { find "$work" -name 'placed-*' ! -name '*.*' | wc -l; }
a_few_are_placed() { [ "$(placed)" -ge 5 ]; }
# replayed N: the same request again gets the same answer.
replayed() { [ "$(request "$1" "again-$1")" = 201 ] && [ "$(header "again-$1" X-Idempotent-Replay)" = true ] && cmp -s "$work/placed-$1.body" "$work/again-$1.body"; }
exists() { probe "$BASE_URL/v1/orders/$(jq -r .id "$work/placed-$1.body")" -H "Authorization: Bearer $API_KEY"; }
# count COMMAND: of how many orders it is true.
count() { for n in $(seq "$orders"); do if "$1" "$n" >/dev/null; then echo; fi; done | wc -l; }

shop
primary=$(server primary)
expect "primary" "$primary" postgres

say "Place $orders orders, two at a time. Each is sent again with its key until it has an answer."
{ for n in $(seq 1 2 "$orders"); do place "$n"; done; } &
{ for n in $(seq 2 2 "$orders"); do place "$n"; done; } &
wait_until "a few are placed" a_few_are_placed

say "The primary dies, and the standby is promoted."
fault 'promote postgres' 'follow postgres'
wait
expect "primary" "$(server primary)" postgres-standby
expect "orders placed" "$(placed)" "$orders"

say "Every answer is kept, also those of the primary that died: send each request again."
expect "replayed byte for byte" "$(count replayed)" "$orders"
expect "orders that exist" "$(count exists)" "$orders"
expect_stock "$((100 - 2 * orders))"

say "The former primary becomes the standby, as a new copy. From then on it has each commit, too."
heal
expect "standby" "$(server standby)" postgres
place_order
expect_order "$order" pending
