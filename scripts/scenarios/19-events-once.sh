#!/usr/bin/env bash
# A consumer of events sends an order's confirmation. Transport is at least once: an event may arrive
# again, or late if Redis was away. Its effect happens once, because the inbox stores the event's ID
# in the same transaction.
. "$(dirname "$0")/lib.sh"
scenario "Events arrive at least once and have their effect once, also if Redis was away"
shop

# consumed RESULT: how many events had this result at the consumers of both replicas.
consumed() {
  for url in "$API1_URL" "$API2_URL"; do probe "$(operations "$url")/metrics"; done |
    awk -v want='events_consumed_total{group="order-confirmations",result="'"$1"'"}' '$1 == want { n += $2 } END { print n + 0 }'
}
# grown RESULT BY: the number is now at least $before + BY.
grown() { [ "$(consumed "$1")" -ge $((before + $2)) ]; }
# event: the fields of the last order's first event, one a line, from the stream.
event() {
  redis XREVRANGE oncepay:events + - COUNT 100 |
    awk -v order="$order" 'NF == 0 { next } /^event_id$/ { left = 16; fields = "" }
      left > 0 { fields = fields $0 "\n"; if (--left == 0 && index(fields, order) && index(fields, "\norder.placed\n")) printf "%s", fields }'
}

# settled: no replica holds an event that it didn't finish, as one does that died.
settled() { [ "$(redis XPENDING oncepay:events order-confirmations | head -n 1)" = 0 ]; }
wait_until "what was before is done" settled

say "Place an order. Its confirmation is made."
before=$(consumed handled)
place_order
wait_until "the confirmation is made" grown handled 1
expect "confirmations made" "$(($(consumed handled) - before))" 1

say "The same event comes three times more, as after a relay's crash."
mapfile -t fields < <(event)
expect "the order's event is in the stream" "$((${#fields[@]} / 2)) fields" "8 fields"
before=$(consumed repeated) made=$(consumed handled)
for _ in 1 2 3; do quietly redis XADD oncepay:events '*' "${fields[@]}"; done
wait_until "all of them are consumed" grown repeated 3
expect "found to be repetitions" "$(($(consumed repeated) - before))" 3
expect "further confirmations" "$(($(consumed handled) - made))" 0

say "Stop Redis, which is the broker, too, and place an order all the same."
before=$(consumed handled)
fault 'stop redis' 'start redis'
place_order
say "Start it again. The event was kept, and has its effect."
heal
wait_until "the confirmation is made" grown handled 1
expect "confirmations made" "$(($(consumed handled) - before))" 1
expect_orders 2
