#!/usr/bin/env bash
# An order and its payment are confirmed by mail. A mail is sent at least once: a replica that dies
# after the mail server has it sends it again, with the same Message-ID. A mail server that is away,
# or refuses a mail, delays that mail and nothing else.
. "$(dirname "$0")/lib.sh"
scenario "An order and its payment are confirmed by mail, also if the mail server was away"
shop

# mails: the order's, as the mail server has them.
mails() { curl -sS --max-time 5 "$MAILS_URL/v1/mails?about=$order&limit=0" 2>/dev/null; }
# come COUNT: so many different mails are there; copies have one Message-ID.
come() { [ "$(mails | jq '[.mails[].message_id] | unique | length')" = "$1" ]; }
# show_mail SUBJECT: one of them.
show_mail() {
  mails | jq -r --arg subject "$1" '[.mails[] | select(.subject | startswith($subject))][0] |
    "    To: \(.to)\n    Subject: \(.subject)\n    Message-ID: <\(.message_id)>\n\(.text | split("\n")[:-1] | map("\n    " + .) | add)"'
}

say "Place an order. Its confirmation is a mail."
place_order
wait_until "the mail is there" come 1
show_mail "Your order"
event=$(redis XREVRANGE oncepay:events + - COUNT 100 |
  awk -v order="$order" '/^event_id$/ { getline; id = $0 } $0 == "order.placed" { kind = id } !found && $0 == order && kind == id { print id; found = 1 }')
expect "its Message-ID is the event's ID" "$(mails | jq -r '.mails[0].message_id')" "$event@example.com"

say "Stop the mail server, and pay. The payment does not wait for it."
fault 'stop mail' 'start mail'
send paid POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: pay-$run" -d '{"method":{"type":"card","token":"tok_visa"}}'
expect_status paid 201
say "Start it again. The mail was kept, and comes."
heal
wait_until "the second mail is there" come 2
show_mail "Your payment"

say "A mail server that refuses a mail for good holds up no other one."
first=$order
quietly send nobody POST "$BASE_URL/v1/customers" -H "Idempotency-Key: nobody-$run" -d '{"name":"Nobody","email":"nobody-'"$run"'@example.com"}'
quietly send lost POST "$BASE_URL/v1/orders" -H "Idempotency-Key: lost-$run" \
  -d '{"customer_id":"'"$(field nobody .id)"'","items":[{"sku":"'"$sku"'","quantity":1}]}'
expect_status lost 201
place_order
wait_until "the next order's mail is there" come 1
order=$(field lost .id)
expect "mails of the order whose customer has no such address" "$(mails | jq '.mails | length')" 0
order=$first
expect "different mails of the first order" "$(mails | jq '[.mails[].message_id] | unique | length')" 2
expect_orders 2
