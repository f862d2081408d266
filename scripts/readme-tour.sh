#!/usr/bin/env bash
# Runs the tour of README.md against a running stack, as a reader would paste it, and checks its
# results, so that the README stays true.
# BASE_URL and PSP_URL say where the stack is, if it isn't at its usual place.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${BASE_URL:-http://127.0.0.1:8080}
psp=${PSP_URL:-http://127.0.0.1:8090}
tour=$(awk '/^```bash tour$/ { on = 1; next } /^```$/ { on = 0 } on' README.md)
tour=${tour//http:\/\/127.0.0.1:8080/$base}
tour=${tour//http:\/\/127.0.0.1:8090/$psp}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
bash -euo pipefail -c "$tour" 2>&1 | tr -d '\r' | tee "$output"

failed=0
# expect WHAT GOT WANTED
expect() {
  if [ "$2" = "$3" ]; then
    printf '  ok    %s: %s\n' "$1" "$2"
  else
    failed=1
    printf '  FAIL  %s: %s, but expected %s\n' "$1" "$2" "$3"
  fi
}
count() { grep -cE "$1" "$output" || true; }
payments() { grep -E '^\{.*"refunded":' "$output" || true; } # no other answer has that member

echo
expect "pay, retry, mismatch, refund" "$(grep -oE '^HTTP/[^ ]+ [0-9]+' "$output" | cut -d ' ' -f 2 | paste -sd ' ' -)" "201 201 422 201"
expect "answers that say that they are a replay" "$(count '^X-Idempotent-Replay: true$')" 1
expect "payments shown" "$(payments | wc -l | tr -d ' ')" 2
expect "differing from each other" "$(payments | uniq -u | wc -l | tr -d ' ')" 0
expect "charges at the provider" "$(count '"id": "ch_')" 1
expect "the order, in the end" "$(tail -n 1 "$output")" partially_refunded
exit "$failed"
