#!/usr/bin/env bash
# Runs the tests of scripts/packages.sh under the race detector, always afresh.
#
#   scripts/go-test.sh unit|integration [FLAG OF GO TEST…]
#
# A skipped test is a failure: it proves nothing. Says at the end which servers
# the tests were run on. TESTENV=native or docker chooses them.
set -eu
cd "$(dirname "$0")/.."
suite=${1:?unit or integration}
shift

# Far above what any package needs; a hang should still show its stacks.
timeout=5m

packages=$(scripts/packages.sh "$suite")
events=$(mktemp)
trap 'rm -f "$events"' EXIT
status=0
# shellcheck disable=SC2086 # one word per package
bin/gotestsum --format pkgname-and-test-fails --jsonfile "$events" -- -race -count=1 -timeout="$timeout" "$@" $packages || status=$?

# Failpoints exist in a build of their own.
if [ "$suite" = integration ]; then
  go test -race -count=1 -timeout="$timeout" -tags failpoints -run Failpoint ./internal/app || status=$?
fi

grep -o '"Output":"testenv: [^"\\]*' "$events" | sed 's/.*testenv: /served by /' | sort -u
if grep -q '"Action":"skip".*"Test":' "$events"; then
  echo "skipped tests prove nothing:" >&2
  grep '"Action":"skip".*"Test":' "$events" >&2
  status=1
fi
exit "$status"
