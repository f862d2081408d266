#!/usr/bin/env bash
# Runs the scenarios against a running stack, and sums up.
#
#   scripts/scenarios/run.sh [--only 01,05] [--full] [--quiet]
#
# --full shows requests to paste, bodies and every check; --quiet only what a failing scenario said,
# in full. The variables at the top of lib.sh say which stack is meant; the default is that of
# `go run ./cmd/stack up`.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" && exit "$1"; }

only='' quiet=''
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:?--only needs numbers, as in 01,05} && shift 2 ;;
    --only=*) only=${1#*=} && shift ;;
    --full) export SCENARIO_FULL=yes && shift ;;
    --quiet) export SCENARIO_FULL=yes && quiet=yes && shift ;;
    -h | --help) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done

# scenarios: the chosen scripts, one a line.
scenarios() {
  local script number
  for script in scripts/scenarios/[0-9][0-9]-*.sh; do
    number=$(basename "$script" | cut -c 1-2)
    case ,${only:-$number}, in *",$number,"*) echo "$script" ;; esac
  done
}

chosen=$(scenarios)
[ -n "$chosen" ] || { echo "no scenario has a number of $only" >&2 && exit 2; }
# shellcheck source=scripts/scenarios/needs.sh
. scripts/scenarios/needs.sh
if [ -z "${STACK:-}" ] && [ -x .stack/bin/stack ]; then
  export STACK=.stack/bin/stack # starts at once, where go run looks for changes first
fi

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
trap 'exit 130' INT # when the scenario that was interrupted has mended what it broke
export SCENARIO_RESULT=$temporary/result
passed=0 failed=0
printf '%-3s %-20s %6s  %-7s %7s\n' NR NAME CHECKS VERDICT SECONDS >"$temporary/summary"
now() { jq -n now; }

for script in $chosen; do
  name=$(basename "$script" .sh)
  began=$(now)
  echo 0 >"$SCENARIO_RESULT"
  verdict=pass
  if [ -n "$quiet" ]; then
    printf '%s …' "$name"
    "$script" >"$temporary/output" 2>&1 || verdict=FAIL
    printf ' %s\n' "$verdict"
    [ "$verdict" = pass ] || cat "$temporary/output"
  else
    "$script" || verdict=FAIL
    echo
  fi
  if [ "$verdict" = pass ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  LC_ALL=C printf '%-3s %-20s %6s  %-7s %7.1f\n' "${name%%-*}" "${name#*-}" "$(cat "$SCENARIO_RESULT")" "$verdict" \
    "$(jq -n "now - $began")" >>"$temporary/summary"
done

echo
cat "$temporary/summary"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
