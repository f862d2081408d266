#!/usr/bin/env bash
# Consumers of events make an order's confirmation, and the notice to the warehouse that it was paid.
# Transport is at least once: an event may arrive again, or late if Redis was away. Its effect happens
# once, because the inbox stores the event's ID in the same transaction.
. "$(dirname "$0")/lib.sh"
scenario "Events arrive at least once and have their effect once, also if Redis was away"
shop

group=order-confirmations
# consumed RESULT: how many events had this result at the group's consumers of both replicas.
consumed() {
  for url in "$API1_URL" "$API2_URL"; do probe "$(operations "$url")/metrics"; done |
    awk -v want='events_consumed_total{group="'"$group"'",result="'"$1"'"}' '$1 == want { n += $2 } END { print n + 0 }'
}
# grown RESULT BY: the number is now at least $before + BY.
grown() { [ "$(consumed "$1")" -ge $((before + $2)) ]; }
# event TYPE: the fields of the last order's event of this type, one a line, from the stream.
event() {
  redis XREVRANGE oncepay:events + - COUNT 100 |
    awk -v order="$order" -v type="$1" 'NF == 0 { next } /^event_id$/ { left = 16; fields = "" }
      left > 0 { fields = fields $0 "\n"; if (--left == 0 && index(fields, order) && index(fields, "\n" type "\n")) printf "%s", fields }'
}

# settled: no replica holds an event that it didn't finish, as one does that died.
settled() { [ "$(redis XPENDING oncepay:events "$group" | head -n 1)" = 0 ]; }
# repeat TYPE: sends the event three times more, and waits until the group has found that. Sets $made.
repeat() {
  mapfile -t fields < <(event "$1")
  expect "the order's event is in the stream" "$((${#fields[@]} / 2)) fields" "8 fields"
  before=$(consumed repeated) made=$(consumed handled)
  for _ in 1 2 3; do quietly redis XADD oncepay:events '*' "${fields[@]}"; done
  wait_until "all of them are consumed" grown repeated 3
  expect "found to be repetitions" "$(($(consumed repeated) - before))" 3
}

wait_until "what was before is done" settled

say "Place an order. Its confirmation is made."
before=$(consumed handled)
place_order
wait_until "the confirmation is made" grown handled 1
expect "confirmations made" "$(($(consumed handled) - before))" 1

say "The same event comes three times more, as after a relay's crash."
repeat order.placed
expect "further confirmations" "$(($(consumed handled) - made))" 0

say "Pay it. The warehouse is told to send the parcel."
group=warehouse-notices
wait_until "what was before is done" settled
before=$(consumed handled)
quietly send paid POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d '{"method":{"type":"card","token":"tok_visa"}}'
wait_until "the notice is made" grown handled 1
expect "notices made" "$(($(consumed handled) - before))" 1

say "The event of the payment comes three times more. One parcel is sent."
repeat payment.succeeded
expect "further notices" "$(($(consumed handled) - made))" 0
group=order-confirmations

say "Stop Redis, which is the broker, too, and place an order all the same."
before=$(consumed handled)
fault 'stop redis' 'start redis'
place_order
say "Start it again. The event was kept, and has its effect."
heal
wait_until "the confirmation is made" grown handled 1
expect "confirmations made" "$(($(consumed handled) - before))" 1
expect_orders 2
