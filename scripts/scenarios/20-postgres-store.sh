#!/usr/bin/env bash
# Records can be kept in PostgreSQL instead of Redis: IDEMPOTENCY_STORE=postgres. This changes
# what a check costs, and nothing that a client sees. Every other scenario has to pass there, on a
# stack of its own.
. "$(dirname "$0")/lib.sh"
scenario "Records in PostgreSQL: all scenarios pass as they do with Redis"

store=postgres
[ "$IDEMPOTENCY_STORE" = redis ] || store=redis # on such a stack, show the records in Redis instead
# 21 and 24 are about other servers, and bring their own stacks, too.
others=$(cd scripts/scenarios && printf '%s\n' [0-9][0-9]-*.sh | cut -c 1-2 | grep -vE '^(20|21|24)$')

say "Run them on a stack whose replicas keep their records in $store."
# Its lease is short: a user's stack has that of production.
env -u STACK STACK_DIR=".stack-$store" PORT_OFFSET="$((${PORT_OFFSET:-6450} + 450))" IDEMPOTENCY_STORE="$store" LEASE_SECONDS=3 NO_COLOR=1 \
  scripts/with-stack.sh scripts/scenarios/run.sh --quiet --only "$(paste -sd, <<<"$others")" </dev/null 2>&1 |
  tee "$work/run" | sed 's/^/  | /' || true
expect "passed, failed" "$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/run" || true)" "$(wc -l <<<"$others") passed, 0 failed"
