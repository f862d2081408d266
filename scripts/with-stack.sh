#!/usr/bin/env bash
# Runs a command against a stack of its own, stops the stack at the end, and returns the command's status.
#
#   scripts/with-stack.sh COMMAND [ARGUMENT…]
#
# The stack has its own folder and ports, and runs beside a stack that is up already. The command finds
# it by the variables that are exported here.
# STACK_DRIVER: native, compose or auto. LEASE_SECONDS: the replicas' lease, short because the scenarios
# wait for it. IDEMPOTENCY_STORE=postgres: keep the records there. STACK_REDIS=sentinel: replicate Redis.
# STACK_POSTGRES=sync-standby: replicate PostgreSQL. STACK_DIR and PORT_OFFSET: the folder and the
# ports, for a further stack.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2 && exit 2; }

dir=${STACK_DIR:-.stack-test}
: "${PORT_OFFSET:=6000}" # puts PostgreSQL and Redis above the ports that Linux gives to clients
lock=$dir.lock
logs=$dir.logs

at() { echo "127.0.0.1:$((PORT_OFFSET + $1))"; }
BASE_URL=http://$(at 8080) API1_URL=http://$(at 8081) API2_URL=http://$(at 8082)
OPS1_URL=http://$(at 9081) OPS2_URL=http://$(at 9082) PSP_URL=http://$(at 8090) MAILS_URL=http://$(at 8025)
REDIS_ADDR=$(at 56379) DATABASE_URL="postgres://oncepay:oncepay@$(at 55432)/oncepay?sslmode=disable"
STACK="$PWD/$dir/bin/stack --dir $PWD/$dir"
: "${LEASE_SECONDS:=3}" "${IDEMPOTENCY_STORE:=redis}"
export BASE_URL API1_URL API2_URL OPS1_URL OPS2_URL PSP_URL MAILS_URL REDIS_ADDR DATABASE_URL STACK LEASE_SECONDS IDEMPOTENCY_STORE PORT_OFFSET

# down uses the program that started the stack: it must work even if the code no longer compiles.
down() {
  if [ -x "$dir/bin/stack" ]; then "$dir/bin/stack" --dir "$dir" down; else go run ./cmd/stack --dir "$dir" down; fi
}
# show: prints the stack's progress, without the hints for users at its end.
show() {
  local line last=''
  while IFS= read -r line; do
    [ -n "$last" ] || printf '%-12s %s\n' stack "$line"
    case $line in Ready*) last=yes ;; esac
  done
}

# One test stack at a time. A lock whose owner has ended does not count.
if ! mkdir "$lock" 2>/dev/null; then
  owner=$(cat "$lock/pid" 2>/dev/null || true)
  if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null; then
    echo "the test stack is in use by process $owner" >&2
    exit 1
  fi
  mkdir -p "$lock"
fi
echo $$ >"$lock/pid"

status=1
finish() {
  trap '' INT TERM HUP
  set +e
  if [ "$status" != 0 ] && [ -x "$dir/bin/stack" ]; then
    mkdir -p "$logs"
    { $STACK status && $STACK logs; } >"$logs/stack.log" 2>&1
    echo "what the services printed: $logs/stack.log" >&2
  fi
  down >"$lock/down" 2>&1 || status=1
  show <"$lock/down"
  rm -rf "$lock"
  exit "$status"
}
trap finish EXIT
trap : PIPE # an interruption may end the reader of our output first, and a write that fails must not end us
trap 'status=130; exit' INT TERM HUP

down >/dev/null 2>&1 || true # what a killed run left behind
# A short grace, because scenarios wait for the reconciler.
go run ./cmd/stack up --dir "$dir" --port-offset "$PORT_OFFSET" --env "IDEMPOTENCY_LEASE=${LEASE_SECONDS}s" \
  --env RECONCILE_GRACE="$((LEASE_SECONDS + 17))s" --env RECONCILE_INTERVAL=1s \
  --env IDEMPOTENCY_STORE="$IDEMPOTENCY_STORE" --no-console 2>&1 | show
status=0
"$@" || status=$?
