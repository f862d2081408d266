#!/usr/bin/env bash
# Runs every suite: the Go tests with the race detector; on stacks of two replicas, the scenarios, the
# tour, oncecheck, a fault campaign of a minute, the console's buttons in a browser, greedy accounts,
# the benchmark's quick form and a short load test; and the fuzz targets with what the others leave
# idle.
# A suite that fails stops no other suite. Nothing needs to run before, and nothing is left running.
# shellcheck disable=SC2317 # the lanes are called by name
set -uo pipefail
cd "$(dirname "$0")/.." || exit

suites=(unit integration fuzz scenarios tour oncecheck console bench security stress faults)
results=$PWD/.task/test-all # one NAME.log and NAME.result per suite

# suite NAME COMMAND…: runs it, prints its output with its name before each line, and stores the result.
suite() {
  local name=$1 began=$SECONDS verdict=pass
  shift
  "$@" </dev/null 2>&1 | tee "$results/$name.log" | while IFS= read -r line; do printf '%-12s %s\n' "$name" "$line"; done
  [ "${PIPESTATUS[0]}" = 0 ] || verdict=FAIL
  printf '%-12s %-8s %8s  %s\n' "$name" "$verdict" "$((SECONDS - began))" "$(count "$name")" >"$results/$name.result"
}

# count NAME: how much a suite did, from its own output.
count() {
  case $1 in
    unit | integration | console | security) grep -o '^DONE [0-9]* tests.* in' "$results/$1.log" | sed 's/DONE //; s/ in$//' ;;
    fuzz) echo "$(grep -c '^ok ' "$results/$1.log") targets" ;;
    scenarios) grep -o '^[0-9]* passed, [0-9]* failed' "$results/$1.log" ;;
    tour) echo "$(grep -c '^  ok ' "$results/$1.log") checks" ;;
    oncecheck) awk '/ hold, / { hold += $1; broken += $3 } END { print hold " rules hold, " broken + 0 " broken" }' "$results/$1.log" ;;
    bench) grep -o '^[0-9]* parts' "$results/$1.log" ;;
    faults) grep -o '^[0-9]* faults, [0-9]* attempts' "$results/$1.log" ;;
    stress) awk '$1 == "all" { print $2 " requests" }' "$results/$1.log" ;;
  esac
}

# Ctrl-C ends a lane when its current suite has ended.
on_stack() {
  trap 'exit 130' INT TERM HUP
  suite scenarios scripts/scenarios/run.sh --quiet
  suite tour scripts/readme-tour.sh
  suite oncecheck scripts/oncecheck.sh
}

# Three lanes of about the same length. The first mostly waits. Its campaign comes late, when there is less beside it.
stack_and_faults() {
  local stacked
  scripts/with-stack.sh scripts/test-all.sh on-stack
  stacked=$?
  suite faults env GENERATED=5000 bin/faults # a quarter of what task test:faults generates
  return "$stacked"
}
unit_and_small() {
  suite unit scripts/go-test.sh unit
  suite security scripts/go-test.sh security
  suite bench bin/bench -quick # measures nothing: whether it runs
  suite stress env STACK_DIR=.stack-stress PORT_OFFSET=6200 STACK_DIRECT=1 scripts/with-stack.sh bin/stress --short
  suite console scripts/go-test.sh console
}

# summary: a line for each suite. It fails unless all have passed.
summary() {
  local name failed=0
  printf '\n%-12s %-8s %8s  %s\n' SUITE VERDICT SECONDS COUNT
  for name in "${suites[@]}"; do
    cat "$results/$name.result" 2>/dev/null || printf '%-12s %-8s\n' "$name" "NOT RUN"
    grep -q "^$name *pass " "$results/$name.result" 2>/dev/null && continue
    failed=1
    grep -sE '^(=== FAIL|[0-9]{2} .* FAIL|--- FAIL|[[:space:]]*(Error|Messages|expected|actual) *:)' "$results/$name.log" | awk '!seen[$0]++' | head -20 | sed 's/^/  /' # which, and why
  done
  if [ "$failed" = 0 ]; then
    printf 'all passed in %d seconds\n' "$SECONDS"
  else
    printf 'FAILED after %d seconds; logs: %s\n' "$SECONDS" "${results#"$PWD"/}"
  fi
  return "$failed"
}

if [ "${1:-}" = on-stack ]; then # with-stack.sh runs this script again, with this argument
  on_stack
  exit
fi

# The servers of this machine, which the task has installed: containers take twice the time (task test:compose).
export STACK_DRIVER="${STACK_DRIVER:-native}"
rm -rf "$results"
mkdir -p "$results" bin
echo "compiling (minutes the first time, seconds afterwards)"
go build -o bin/ ./loadtest/stress ./loadtest/bench ./loadtest/faults || exit 1
go build -C loadtest/others -o /dev/null . || exit 1 # the benchmark builds it again, from the cache

# lane COMMAND…: in the background, as a process group of its own, so that Ctrl-C reaches all of it.
set -m
lanes=()
lane() {
  (trap 'exit 130' INT TERM HUP && "$@") &
  lanes+=("$!")
}
interrupt() {
  local pid
  trap '' INT TERM HUP
  for pid in "${lanes[@]}"; do kill -INT -- "-$pid" 2>/dev/null; done
  wait
  exit 130
}
trap interrupt INT TERM HUP

lane stack_and_faults
lane suite integration scripts/go-test.sh integration
lane unit_and_small
lane suite fuzz env FUZZTIME=10000x nice -n 10 scripts/fuzz.sh # executions, of which a busy machine makes as many
wait "${lanes[0]}"
stacked=$?
wait "${lanes[@]}"
summary || exit 1
exit "$stacked"
