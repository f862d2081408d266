#!/usr/bin/env bash
# Checks the models with Spin: first as they are, then with each safeguard taken
# out, which has to break the promise that the model's SWITCH line names. Prints
# the steps that break it. Arguments: models (default: all).
set -uo pipefail
cd "$(dirname "$0")" || exit
(cd ../.. && go run ./cmd/task --programs model) || exit
export LC_ALL=C MODELS=$PWD WORK
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# search MODEL KIND FLAG…: searches all states, in a directory of its own. -b: a
# search that is cut off is a failure. Safety stories are the shortest ones.
search() {
  local model=$1 kind=$2 compile=(-DNOREDUCE -DNFAIR=3) run=(-a -f)
  mkdir -p "$WORK/$model.$*" && cd "$WORK/$model.$*" && cp "$MODELS/common.h" "$MODELS/$model.pml" . || return
  [ "$kind" = liveness ] || compile=(-DSAFETY -DNOCLAIM) run=(-E)
  [ "$kind$#" != safety3 ] || compile+=(-DBFS)
  shift 2
  {
    spin -a "-D${kind^^}" "$@" "$model.pml" && gcc -O1 -w "${compile[@]}" -o pan pan.c && ./pan -b "${run[@]}" -m1000000 -w22
  } >log 2>&1 && grep -q 'errors:' log && return
  cat log
  return 1
}
holds() { grep -q 'errors: 0' log; }
states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log; }
ltl() { sed -n 's/^ltl \([a-z]*\) .*/\1/p' "$MODELS/$1.pml"; }

# story MODEL KIND FLAG…: the steps of the counterexample in plain sentences.
story() {
  spin -t -T "-D${2^^}" "${@:3}" "$1.pml" | sed -n '/^spin: trail ends/q; /^ltl /d; /^Never claim/d; /^spin:/d
    s/.*<<<<<START OF CYCLE>>>>>.*/from here on, nothing else happens/; s/^ *//; /^[A-Za-z]/s/^/    /p; /BROKEN/q'
}

# intact MODEL KIND: every promise of the model holds.
intact() {
  search "$1" "$2" || return
  holds && printf '%-10s %-9s %9s states  every promise holds\n' "$1" "$2" "$(states)" && return
  echo "$1: FAIL, this breaks a promise ($2):"
  story "$1" "$2"
  return 1
}

# broken MODEL SWITCH PROMISE WHAT: the model without one safeguard breaks that promise.
broken() {
  local kind=safety
  [ "$3" != "$(ltl "$1")" ] || kind=liveness
  printf '\n%s without a safeguard (%s): %s\n' "$1" "$2" "$4"
  search "$1" "$kind" "-D$2" || return
  if holds; then
    echo "    FAIL: no promise is broken" && return 1
  fi
  story "$1" "$kind" "-D$2"
  case $kind in
  liveness) echo "    BROKEN $3: it never happens" ;;
  *) story "$1" "$kind" "-D$2" | grep -q "BROKEN $3:" || { echo "    FAIL: it had to be $3" && return 1; } ;;
  esac
}

# job LINE: one line of the list of jobs. The output goes to a file of its own.
job() {
  local number args
  IFS='|' read -r number args <<<"$1"
  IFS='|' read -ra args <<<"$args"
  if "${args[@]}" >"$WORK/out.$number" 2>&1; then printf . >&2; else touch "$WORK/failed" && printf F >&2; fi
}
export -f search holds states ltl story intact broken job

jobs_of() {
  local model
  for model in "$@"; do
    echo "intact|$model|safety"
    [ -z "$(ltl "$model")" ] || echo "intact|$model|liveness"
  done
  for model in "$@"; do
    sed -n "s/^\/\/ SWITCH \([A-Z_]*\) breaks \([a-z]*\): \(.*\)/broken|$model|\1|\2|\3/p" "$model.pml"
  done
}

[ $# -gt 0 ] || set -- key refusal payment relay consumers
jobs_of "$@" | awk '{printf "%03d|%s\n", NR, $0}' >"$WORK/jobs"
# shellcheck disable=SC2016 # expanded by the inner shell
tr '\n' '\0' <"$WORK/jobs" | xargs -0 -P 2 -I{} bash -c 'job "$1"' _ {}
echo >&2
cat "$WORK"/out.*
result=passed
[ ! -e "$WORK/failed" ] || result=FAILED
printf '\n%d checks, %d of them of a safeguard taken out, in %d s: %s\n' \
  "$(wc -l <"$WORK/jobs")" "$(grep -c '|broken|' "$WORK/jobs")" "$SECONDS" "$result"
[ "$result" = passed ]
