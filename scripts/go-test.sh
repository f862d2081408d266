#!/usr/bin/env bash
# Runs the Go tests of scripts/packages.sh.
#
#   scripts/go-test.sh unit|integration|console|security|quick [FLAG OF GO TEST…]
#
# All but quick run every test anew, with the race detector. quick is unit
# without it, and does not repeat what has passed and has not changed.
# A skipped test is a failure: it proves nothing. At the end the script prints
# on which servers the tests ran. TESTENV=native or docker chooses them, and
# PACKAGES other packages.
set -eu
cd "$(dirname "$0")/.."
suite=${1:?unit, integration, console, security or quick}
shift

# Far above what any package needs; a test that hangs still prints its stacks.
timeout=10m
flags=(-race -count=1 -vet=off -ldflags=-w) # the linter vets; without DWARF linking is faster
packages=$suite
if [ "$suite" = quick ]; then flags=() packages=unit; fi

# Test servers keep their data in memory where there is room: a test's database is 300 files.
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -1 || true)" -ge 4000000 ] 2>/dev/null && [ -w /dev/shm ]; then
  export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}" TMPDIR=/dev/shm
fi

echo "compiling the tests (minutes the first time, seconds afterwards)"
packages=${PACKAGES:-$(scripts/packages.sh "$packages")}
events=$(mktemp)
# An interruption ends a test, and not the stack that it has started.
finish() {
  rm -f "$events"
  [ ! -x ".stack-$suite/bin/stack" ] || ".stack-$suite/bin/stack" --dir ".stack-$suite" down
}
trap finish EXIT
status=0
# json_tests FLAG…: go test -json of the packages. It keeps the test binaries, because linking one takes two CPU
# seconds; go links a kept one again only if it is out of date. A suite has its own folders, because another one may
# run at the same time. A binary is named after the last element of its path: the second package with a name goes into a
# second folder.
json_tests() {
  local round chosen status=0
  for ((round = 1; ; round++)); do
    chosen=$(sort -r <<<"$packages" | awk -F/ -v round=$round '++seen[$NF] == round')
    [ -n "$chosen" ] || return $status
    mkdir -p ".task/tests/$suite/$round"
    # shellcheck disable=SC2086 # one word per package
    go test -json -o ".task/tests/$suite/$round/" "$@" $chosen || status=1
  done
}
export -f json_tests
export packages suite
go tool -modfile=tools/go.mod gotestsum --format pkgname-and-test-fails --jsonfile "$events" \
  --raw-command -- bash -c 'json_tests "$@"' json_tests "${flags[@]}" -timeout="$timeout" "$@" || status=$?

# Failpoints exist only in a build of their own.
if [ "$suite" = integration ]; then
  go test -race -count=1 -timeout="$timeout" -tags failpoints -run Failpoint ./internal/app/... || status=$?
fi

grep -o '"Output":"testenv: [^"\\]*' "$events" | sed 's/.*testenv: /served by /' | sort -u
if grep -q '"Action":"skip".*"Test":' "$events"; then
  echo "skipped tests prove nothing:" >&2
  grep '"Action":"skip".*"Test":' "$events" >&2
  status=1
fi
exit "$status"
