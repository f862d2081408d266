#!/usr/bin/env bash
# The provider also reports what it did by webhooks: later, more than once and in any order. A
# signed event settles a processing payment once. An unsigned one is refused.
. "$(dirname "$0")/lib.sh"
scenario "Webhooks: a provider event settles a payment whose answer was lost, once, in whatever order events come"
shop
place_order
key=pay-$run
pay='{"method":{"type":"card","token":"tok_charged_no_answer"}}'
order_status() { probe -H "Authorization: Bearer $API_KEY" "$BASE_URL/v1/orders/$order" | jq -r .status; }
paid() { [ "$(order_status)" = paid ]; }

say "Pay. The provider charges the card and closes the connection. The client never returns."
start first POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
wait "$(cat "$work/first.pid")" || true
meanwhile=$(order_status) # before anything is shown: the event comes in two seconds
finish first
expect_problem first 503 payment_outcome_unknown
expect "the order is" "$meanwhile" paying

say "A moment later the provider's event arrives and settles the payment."
wait_until "the order is paid" paid
expect_order "$order" paid
expect_charges "$order" "succeeded, attempts 1"

say "The key has its answer."
send late POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key" -d "$pay"
expect "status" "$(status late)" 201
expect "X-Idempotent-Replay" "$(header late X-Idempotent-Replay)" true
payment=$(field late .id)

say "Refund it, and have the provider send all its events again, three times, the newest first."
send refund POST "$BASE_URL/v1/payments/$payment/refunds" -H "Idempotency-Key: refund-$run" -d '{}'
expect_status refund 201
for n in 1 2 3; do
  send "events$n" POST "$PSP_URL/v1/webhooks/replay?reference=$order"
  expect "events" "$(field "events$n" '.data | length')" 2
  expect "each was answered" "$(field "events$n" '[.data[].status] | unique | join(", ")')" 200
done
expect_order "$order" refunded
send payment GET "$BASE_URL/v1/payments/$payment"
expect "refunded of the payment, once" "$(field payment '.refunded.amount == .amount.amount')" true
expect_charges "$order" "succeeded, attempts 1"

say "An unsigned event is refused: it says that a card was declined which was charged."
place_order
send pending POST "$BASE_URL/v1/orders/$order/payments" -H "Idempotency-Key: $key-2" -d '{"method":{"type":"card","token":"tok_charged_silent"}}'
expect_problem pending 503 payment_outcome_unknown
quietly send look GET "$BASE_URL/v1/idempotency-keys/$key-2"
payment=$(basename "$(field look .resource)")
send forged POST "$BASE_URL/v1/webhooks/psp" -H "webhook-id: evt_$run" -H "webhook-timestamp: $(date +%s)" \
  -H 'webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' \
  -d '{"type":"charge.declined","data":{"id":"ch_forged","idempotency_key":"payment-'"$payment"'","amount":5000,"currency":"USD"}}'
expect_problem forged 401 invalid_signature

say "Nothing believed it. Without an event and without a retry, the reconciler asks the provider."
wait_until "the order is paid" paid
expect_order "$order" paid
expect_charges "$order" "succeeded, attempts 2"
