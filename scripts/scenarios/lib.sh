# shellcheck shell=bash
# The commands of the scenarios: say, send, expect, and a verdict at the end. Each scenario sources
# it, and runs alone against the stack that these variables name. With --full (or SCENARIO_FULL=yes)
# it shows each request as a line of curl to paste, each answer with its body, and every check.

set -euo pipefail

: "${BASE_URL:=http://127.0.0.1:8080}" # nginx, in front of both replicas
: "${API1_URL:=http://127.0.0.1:8081}" # replica api-1 itself
: "${API2_URL:=http://127.0.0.1:8082}" # replica api-2 itself
: "${PSP_URL:=http://127.0.0.1:8090}"  # the payment provider's simulator
: "${MAILS_URL:=http://127.0.0.1:8025}" # the mail sink's list
: "${REDIS_ADDR:=127.0.0.1:56379}"
: "${DATABASE_URL:=postgres://oncepay:oncepay@127.0.0.1:55432/oncepay?sslmode=disable}"
: "${IDEMPOTENCY_STORE:=redis}" # where the replicas keep their records: redis or postgres
: "${API_KEY:=sk_test_demo}"
: "${OTHER_API_KEY:=sk_test_other}"  # of a second account
: "${STACK:=go run ./cmd/stack}"     # injects faults and ends them
: "${LEASE_SECONDS:=15}"             # IDEMPOTENCY_LEASE of the replicas; more only takes longer

# Longer than every timeout of nginx: the server has to give up first.
answer_seconds=75
# A killed replica has to start again and to connect to its databases.
heal_seconds=60
# How often a condition is checked.
poll_seconds=0.2

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case ${1:-} in
  '') ;;
  --full) export SCENARIO_FULL=yes ;;
  *) echo "usage: $0 [--full]" >&2 && exit 2 ;;
esac
full=${SCENARIO_FULL:-}
# shellcheck source=scripts/scenarios/needs.sh
. scripts/scenarios/needs.sh
work=$(mktemp -d)
# Letters and digits; too few digits for a card number.
run=r$(od -An -N5 -tx1 /dev/urandom | tr -d ' \n')
checks=0 failed=0 placed=0 undo='' held=''

bold='' green='' red='' blue='' dim='' plain='' json_colour=-M
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' blue=$'\e[36m' dim=$'\e[2m' plain=$'\e[0m' json_colour=-C
fi

# shellcheck source=scripts/scenarios/records.sh
. scripts/scenarios/records.sh

# --- printing -----------------------------------------------------------------

# scenario TITLE: what is shown, in one sentence.
scenario() { printf '%s%s  %s%s\n' "$bold" "$(basename "$0" .sh)" "$1" "$plain"; }

# say TEXT: the next step.
say() { printf '\n%s\n' "$*"; }

# quietly COMMAND…: for steps that are only preparation.
quietly() {
  local quiet=yes
  "$@" >/dev/null
}

# --- sending -----------------------------------------------------------------

# send NAME METHOD URL [CURL OPTION…]: sends a request, and shows it and the answer, which is kept
# under NAME.
send() {
  start "$@"
  finish "$1"
}

# start NAME METHOD URL [CURL OPTION…]: send without waiting for the answer.
start() {
  local name=$1 method=$2 url=$3
  shift 3
  local request=(-X "$method" "$url")
  case $url in "$PSP_URL"/*) ;; *) request+=(-H "Authorization: Bearer $API_KEY") ;; esac
  case $method in POST | PUT | PATCH) request+=(-H 'Content-Type: application/json') ;; esac
  request+=("$@")
  rm -f "$work/$name".*
  place_of "$url" >"$work/$name.sent_to"
  show_request "$name" "${request[@]}"
  touch "$work/$name.body" "$work/$name.headers"
  curl -sS --max-time "$answer_seconds" -D "$work/$name.headers" -o "$work/$name.body" \
    -w '%{http_code}' "${request[@]}" >"$work/$name.status" 2>"$work/$name.error" &
  echo $! >"$work/$name.pid"
}

# finish NAME: waits for the answer to a request that was started, and shows it.
finish() {
  wait "$(cat "$work/$1.pid")" || true # no answer is an answer: see status
  show_answer "$1"
}

# retry_while STATUS SECONDS NAME METHOD URL [CURL OPTION…]: sends the same request again while the
# answer is STATUS. It waits as Retry-After says, and for SECONDS in total. $retries counts.
retry_while() {
  local unwanted=$1 deadline=$((SECONDS + $2)) name=$3 wait_for
  shift 2
  retries=0
  send "$@"
  while [ "$(status "$name")" = "$unwanted" ] && [ "$SECONDS" -lt "$deadline" ]; do
    retries=$((retries + 1))
    wait_for=$(header "$name" Retry-After)
    printf '%s  … %s, trying again in %s s%s\n' "$dim" "$unwanted" "${wait_for:-1}" "$plain"
    sleep "${wait_for:-1}"
    quietly send "$@"
  done
  [ "$retries" = 0 ] || show_answer "$name"
}

# place_of URL: who listens there.
place_of() {
  case $1 in
    "$API1_URL"/*) echo api-1 ;;
    "$API2_URL"/*) echo api-2 ;;
    "$PSP_URL"/*) echo provider ;;
    *) echo nginx ;;
  esac
}

# show_request NAME CURL OPTION…: who asks whom for what.
show_request() {
  local name=$1 word option='' line='' method='' path=''
  [ -z "${quiet:-}" ] || return 0
  shift
  if [ -n "$full" ]; then
    line='  $ curl -i'
    for word; do
      case $word in -X) ;; -*) line+=$' \\\n     ' ;; esac
      line+=" $(quote "$word")"
    done
    printf '%s%s%s\n' "$dim" "$line" "$plain"
    return
  fi
  for word; do
    case $option,$word in
      -X,*) method=$word ;;
      -H,Authorization:* | -H,Content-Type:*) ;;
      -H,* | -d,* | --data*,*) line+="  $word" ;;
      ,http*) path=/${word#*://*/} ;;
    esac
    case $word in -*) option=$word ;; *) option='' ;; esac
  done
  printf '  %s%-8s → %-8s%s %s%s\n' "$blue" "$name" "$(<"$work/$name.sent_to")" "$plain" "$(shorten "$method $path $dim$line")" "$plain"
}

# shorten TEXT: identifiers by their last characters, and not more than fits a line.
shorten() { sed -E 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{8}([0-9a-f]{4})/…\2/g; s/^(.{150}).*/\1…/' <<<"$1"; }

# show_answer NAME: who answers what to whom.
show_answer() {
  local from sent_to text colour=$green
  [ -z "${quiet:-}" ] || return 0
  sent_to=$(<"$work/$1.sent_to")
  from=$(header "$1" X-Served-By)
  [ "$sent_to" != nginx ] || from="nginx${from:+ ($from)}"
  text="$(status "$1") $(told "$1")"
  case $text in
    000*) text="no answer: $(<"$work/$1.error")" colour=$red ;;
    5*) colour=$red ;;
    4*) colour=$bold ;;
  esac
  printf '  %s%-8s ← %-8s%s %s%s%s\n' "$blue" "$1" "${from:-$sent_to}" "$plain" "$colour" "$text" "$plain"
  [ -n "$full" ] && [ -s "$work/$1.headers" ] || return 0
  sed 's/\r$//; s/^/    /' "$work/$1.headers"
  pretty "$work/$1.body"
}

# told NAME: an answer in some words: whether it is a replay, and what it says of the state. With
# --full the body is printed, so the state is left out here.
told() {
  local words='' wait_for
  [ "$(header "$1" X-Idempotent-Replay)" != true ] || words='replayed, '
  [ -n "$full" ] || words+=$(jq -r 'if type != "object" then empty else
    if .code then .code
    elif .state then "key " + .state
    elif .status then (if .order_id then "payment " elif .items then "order " else "" end) + (.status | tostring)
    else empty end end' "$work/$1.body" 2>/dev/null) || true
  wait_for=$(header "$1" Retry-After)
  printf '%s' "${words%, }${wait_for:+, Retry-After $wait_for s}"
}

# pretty FILE: JSON indented, anything else as it is.
pretty() { { jq "$json_colour" . "$1" 2>/dev/null || cat "$1" && echo; } | sed 's/^/    /'; }

quote() {
  local apostrophe="'\\''"
  case $1 in
    '') printf "''" ;;
    *[![:print:]]*) printf '%q' "$1" ;;
    *[!A-Za-z0-9_./:=-]*) printf "'%s'" "${1//\'/$apostrophe}" ;;
    *) printf '%s' "$1" ;;
  esac
}

# --- reading answers ---------------------------------------------------------

# status NAME: the HTTP status of an answer, 000 when there was none.
status() { printf '%s' "$(<"$work/$1.status")"; }

# header NAME HEADER: the header's value, or nothing.
header() {
  local line
  shopt -s nocasematch # names of headers
  while IFS= read -r line; do
    if [[ ${line%%:*} == "$2" ]]; then
      line=${line#*: }
      printf '%s' "${line%$'\r'}"
    fi
  done <"$work/$1.headers"
  shopt -u nocasematch
}

# field NAME FILTER: what a jq filter finds in the body; the scenario can't go
# on when it finds nothing.
field() {
  jq -er "$2" "$work/$1.body" 2>/dev/null ||
    { printf '  %s: no %s in the answer %s %s\n' "$1" "$2" "$(status "$1")" "$(cat "$work/$1.body")" >&2 && return 1; }
}

# --- expecting ---------------------------------------------------------------

# expect WHAT GOT WANTED: one check.
expect() {
  checks=$((checks + 1))
  if [ "$2" = "$3" ]; then
    printf '  %sok%s    %s: %s\n' "$green" "$plain" "$1" "${2:-none}"
  else
    failed=$((failed + 1))
    printf '  %sFAIL%s  %s: %s, but expected %s\n' "$red" "$plain" "$1" "${2:-none}" "${3:-none}"
  fi
}

# confirm WHAT GOT WANTED: expect, for what the answer's line says already: only a failure is news.
confirm() {
  if [ "$2" = "$3" ] && [ -z "$full" ]; then
    checks=$((checks + 1))
  else
    expect "$@"
  fi
}

# answer_to COMMAND…: yes or no, as an answer for expect.
answer_to() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }

# expect_status NAME STATUS: and that it was done now, not replayed.
expect_status() {
  confirm "status" "$(status "$1")" "$2"
  confirm "X-Idempotent-Replay" "$(header "$1" X-Idempotent-Replay)" ''
}

# expect_settled NAME: a payment that is settled by this request or, if it came late, by the
# reconciler, which asks the provider for the same charge. Its log says so.
expect_settled() {
  if [ "$(header "$1" X-Idempotent-Replay)" = true ] && reconciled "$(field "$1" .id)"; then
    expect "status, after the reconciler" "$(status "$1")" 201
  else
    expect_status "$1" 201
  fi
}

# reconciled PAYMENT: it was settled by the reconciler of a replica.
reconciled() { $STACK logs api-1 api-2 2>/dev/null | grep -F '"msg":"reconciled"' | grep -cF "\"id\":\"$1\"" >/dev/null; }

# expect_problem NAME STATUS CODE: an error of the one shape, RFC 9457.
expect_problem() {
  confirm "status" "$(status "$1")" "$2"
  confirm "Content-Type" "$(header "$1" Content-Type)" application/problem+json
  confirm "code" "$(jq -r .code "$work/$1.body" 2>&1)" "$3"
}

# expect_retry_after NAME: the answer says when to come back, in whole seconds.
expect_retry_after() {
  confirm "Retry-After is a number of seconds" "$(header "$1" Retry-After | grep -cE '^[1-9][0-9]*$')" 1
}

# expect_replay FIRST AGAIN: the second answer is the first one, byte for byte.
expect_replay() {
  confirm "status, as the first time" "$(status "$2")" "$(status "$1")"
  confirm "X-Idempotent-Replay" "$(header "$2" X-Idempotent-Replay)" true
  local name
  for name in Content-Type Location ETag; do
    confirm "$name, as the first time" "$(header "$2" "$name")" "$(header "$1" "$name")"
  done
  expect "body identical, byte for byte" "$(answer_to cmp "$work/$1.body" "$work/$2.body")" yes
}

# expect_charges ORDER WANTED: what the provider did for an order, as it says itself: "none",
# "succeeded, attempts 1", or several joined by "; ".
expect_charges() {
  quietly send books GET "$PSP_URL/v1/charges?reference=$1"
  expect "charges at the provider" "$(field books \
    'if .data == [] then "none" else [.data[] | "\(.status), attempts \(.attempts)"] | join("; ") end')" "$2"
}

# expect_order ORDER STATUS, expect_orders COUNT (of this run's customer),
# expect_stock COUNT (of this run's product): what the shop says.
expect_order() {
  quietly send look GET "$BASE_URL/v1/orders/$1"
  expect "the order is" "$(field look .status)" "$2"
}

expect_orders() {
  quietly send look GET "$BASE_URL/v1/orders?customer_id=$customer"
  expect "orders of the customer" "$(field look '.data | length')" "$1"
}

expect_stock() {
  quietly send look GET "$BASE_URL/v1/products/$sku"
  expect "stock left" "$(field look .stock)" "$1"
}

# --- preparation -----------------------------------------------------

# shop: creates a product with a stock of 100 and a customer, so that effects can be counted. Sets
# $sku, $customer and $cart, the body of an order.
shop() {
  sku=scenario-$run
  quietly send product PUT "$BASE_URL/v1/products/$sku" \
    -d '{"name":"Scenario mug","price":{"amount":2500,"currency":"USD"},"stock":100}'
  quietly send customer POST "$BASE_URL/v1/customers" -H "Idempotency-Key: customer-$run" \
    -d '{"name":"Ada Lovelace","email":"ada-'"$run"'@example.com"}'
  customer=$(field customer .id)
  cart='{"customer_id":"'$customer'","items":[{"sku":"'$sku'","quantity":2}]}'
  printf '%sCreated customer %s and product %s with a stock of 100.%s\n' "$dim" "$customer" "$sku" "$plain"
}

# place_order: an order of two, to be paid. Sets $order.
place_order() {
  placed=$((placed + 1))
  quietly send order POST "$BASE_URL/v1/orders" -H "Idempotency-Key: order-$placed-$run" -d "$cart"
  order=$(field order .id)
  printf '%sPlaced order %s.%s\n' "$dim" "$order" "$plain"
}

# --- faults ----------------------------------------------------

# fault INJECT END: injects a fault, as in fault 'kill api-1' 'start api-1'. heal ends it, at the
# latest when the scenario ends.
fault() {
  undo=$2
  stack "$1"
}

# hold_answers: the provider charges, but keeps its first answer for a key, and its event, until
# release_answers, at the latest when the scenario ends.
hold_answers() {
  held=yes
  quietly send held PUT "$PSP_URL/v1/trouble" -d '{"answers":"held","webhooks":"delayed"}'
  confirm "the provider holds its answers" "$(status held)" 200
}

release_answers() {
  [ -n "$held" ] || return 0
  held=''
  probe -X DELETE "$PSP_URL/v1/trouble" >/dev/null
}

# heal: ends the fault, and waits until everything works again.
heal() {
  [ -n "$undo" ] || return 0
  local command=$undo
  undo=''
  stack "$command" &&
    wait_until "Redis answers" redis PING &&
    wait_until "api-1 is ready" probe "$(operations "$API1_URL")/readyz" &&
    wait_until "api-2 is ready" probe "$(operations "$API2_URL")/readyz" &&
    wait_until "nginx answers" probe -H "Authorization: Bearer $API_KEY" "$BASE_URL/v1/products"
}

# stack 'COMMAND ARGUMENTS': a command of cmd/stack.
stack() {
  printf '%s  $ %s %s%s\n' "$dim" "$STACK" "$1" "$plain"
  # shellcheck disable=SC2086 # both are command lines, to be split into words
  $STACK $1 2>&1 | sed 's/^/  | /'
}

# operations URL: a replica's operations port is its own plus 1000.
operations() { echo "${1%:*}:$((${1##*:} + 1000))"; }

# probe URL: prints what is there, and fails unless that is well.
probe() { curl -fsS --max-time 5 "$@"; }

# wait_until WHAT COMMAND…: polls until the command succeeds. The scenario fails if it never does.
wait_until() {
  local what=$1 deadline=$((SECONDS + heal_seconds))
  shift
  printf '%s  … waiting until %s' "$dim" "$what"
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      printf ': not within %s s%s\n' "$heal_seconds" "$plain"
      return 1
    fi
    printf '.'
    sleep "$poll_seconds"
  done
  printf ': yes%s\n' "$plain"
}

# --- the end -----------------------------------------------------------------

verdict() {
  local stopped=$?
  trap - EXIT
  set +e
  [ -z "$undo" ] || say "Ending the fault."
  heal || stopped=1
  release_answers || stopped=1
  jobs -p | xargs kill 2>/dev/null # requests that no step waits for
  rm -rf "$work"
  if [ "$stopped" != 0 ]; then
    failed=$((failed + 1))
    printf '  %sFAIL%s  the scenario could not be finished\n' "$red" "$plain"
  fi
  [ -z "${SCENARIO_RESULT:-}" ] || echo "$checks" >"$SCENARIO_RESULT"
  if [ "$failed" = 0 ] && [ "$checks" -gt 0 ]; then
    printf '\n%sPASS%s  %s checks\n' "$green" "$plain" "$checks"
    exit 0
  fi
  printf '\n%sFAIL%s  %s of %s checks\n' "$red" "$plain" "$failed" "$checks"
  exit 1
}
trap verdict EXIT
# Interrupted is not passed.
trap 'exit 130' INT
trap 'exit 143' TERM HUP
