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
apart=() # process groups of the scenarios that bring a stack of their own: they run beside the others
trap 'rm -rf "$temporary"' EXIT
# When the scenarios that were interrupted have mended what they broke, and stopped their stacks.
trap 'for pid in "${apart[@]}"; do kill -INT -- "-$pid" 2>/dev/null || true; done; wait; exit 130' INT TERM HUP
passed=0 failed=0
now() { jq -n now; }

# run SCRIPT: a scenario. Its line of the summary is a file.
run() {
  local name began verdict=pass
  name=$(basename "$1" .sh) began=$(now)
  export SCENARIO_RESULT=$temporary/$name.result
  echo 0 >"$SCENARIO_RESULT"
  "$1" || verdict=FAIL
  LC_ALL=C printf '%-3s %-20s %6s  %-7s %7.1f\n' "${name%%-*}" "${name#*-}" "$(cat "$SCENARIO_RESULT")" "$verdict" \
    "$(jq -n "now - $began")" >"$temporary/$name.summary"
}

set -m # a group of its own, which Ctrl-C in a terminal does not reach: only we interrupt it
for script in $(grep -l 'with-stack\.sh' $chosen); do
  output=$temporary/$(basename "$script" .sh).output
  true >"$output" # by it the loop below knows the scenario, which may begin later than the loop
  run "$script" </dev/null >"$output" 2>&1 &
  apart+=("$!")
done
set +m

next=0 # of apart
for script in $chosen; do
  name=$(basename "$script" .sh)
  output=$temporary/$name.output
  [ -z "$quiet" ] || printf '%s …' "$name"
  if [ -e "$output" ]; then
    [ -n "$quiet" ] || echo "$name runs on a stack of its own since the start; what it prints follows when it ends"
    wait "${apart[next]}" || true
    next=$((next + 1))
    [ -n "$quiet" ] || cat "$output"
  elif [ -n "$quiet" ]; then
    run "$script" >"$output" 2>&1
  else
    run "$script"
  fi
  verdict=$(awk '{ print $4 }' "$temporary/$name.summary" || true)
  if [ "$verdict" = pass ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  if [ -z "$quiet" ]; then
    echo
  else
    printf ' %s\n' "${verdict:=FAIL}"
    [ "$verdict" = pass ] || cat "$output"
  fi
done

echo
printf '%-3s %-20s %6s  %-7s %7s\n' NR NAME CHECKS VERDICT SECONDS
cat "$temporary"/*.summary
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
