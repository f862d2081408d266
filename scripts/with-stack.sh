#!/usr/bin/env bash
# Runs a command against a stack of its own and takes that down at the end,
# whatever became of the command, whose status it returns.
#
#   scripts/with-stack.sh COMMAND [ARGUMENT…]
#
# The stack has its own folder and ports, and leaves one that is up alone.
# STACK_DRIVER is native, compose or auto. LEASE_SECONDS is the replicas' lease;
# it is short because the scenarios wait for it. IDEMPOTENCY_STORE=postgres has
# the records kept there, STACK_REDIS=sentinel replicates Redis. STACK_DIR and
# PORT_OFFSET make it another one, beside the usual. The command finds the stack
# by the variables that are exported here.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2 && exit 2; }

dir=${STACK_DIR:-.stack-test}
: "${PORT_OFFSET:=6000}" # puts PostgreSQL and Redis above the ports that Linux gives to clients
lock=$dir.lock
logs=$dir.logs

at() { echo "127.0.0.1:$((PORT_OFFSET + $1))"; }
BASE_URL=http://$(at 8080) API1_URL=http://$(at 8081) API2_URL=http://$(at 8082)
OPS1_URL=http://$(at 9081) OPS2_URL=http://$(at 9082) PSP_URL=http://$(at 8090)
REDIS_ADDR=$(at 56379) DATABASE_URL="postgres://oncepay:oncepay@$(at 55432)/oncepay?sslmode=disable"
STACK="$PWD/$dir/bin/stack --dir $PWD/$dir"
: "${LEASE_SECONDS:=3}" "${IDEMPOTENCY_STORE:=redis}"
export BASE_URL API1_URL API2_URL OPS1_URL OPS2_URL PSP_URL REDIS_ADDR DATABASE_URL STACK LEASE_SECONDS IDEMPOTENCY_STORE PORT_OFFSET

# down uses the program that brought the stack up: it must work while the code
# does not compile.
down() {
  if [ -x "$dir/bin/stack" ]; then "$dir/bin/stack" --dir "$dir" down; else go run ./cmd/stack --dir "$dir" down; fi
}
# show: the stack's progress under its name, without what a user could do then.
show() {
  local line last=''
  while IFS= read -r line; do
    [ -n "$last" ] || printf '%-12s %s\n' stack "$line"
    case $line in Ready*) last=yes ;; esac
  done
}

# One test stack at a time; a lock whose owner is gone counts for nothing.
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
  trap '' INT TERM
  if [ "$status" != 0 ] && [ -x "$dir/bin/stack" ]; then
    mkdir -p "$logs"
    { $STACK status && $STACK logs; } >"$logs/stack.log" 2>&1 || true
    echo "what the services printed: $logs/stack.log" >&2
  fi
  down 2>&1 | show || status=1
  rm -rf "$lock"
  exit "$status"
}
trap finish EXIT
trap 'status=130; exit' INT TERM

down >/dev/null 2>&1 || true # what a run left that was killed
# The reconciler is patient with handlers; a scenario that waits for it need not be.
go run ./cmd/stack up --dir "$dir" --port-offset "$PORT_OFFSET" --env "IDEMPOTENCY_LEASE=${LEASE_SECONDS}s" \
  --env RECONCILE_GRACE="$((LEASE_SECONDS + 17))s" --env RECONCILE_INTERVAL=1s \
  --env IDEMPOTENCY_STORE="$IDEMPOTENCY_STORE" 2>&1 | show
status=0
"$@" || status=$?
