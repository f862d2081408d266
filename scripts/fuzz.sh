#!/usr/bin/env bash
# Runs every fuzz target of the tree for FUZZTIME (10s, or 10000x executions), one after the other, each in one process. What
# fails is written into testdata/fuzz beside its target: commit it with the correction.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .task/tests/fuzz # keeps the test binaries: a package is linked once for all its targets
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz FOLDER TARGET. Go 1.26 may report its own deadline as a failure when the time is over on a busy machine
# (https://go.dev/issue/75804, mended in 1.27). That is all it then prints: a finding names its input.
fuzz() {
  go test -C "$1" -o "$PWD/.task/tests/fuzz/${1//\//-}.test" -run '^$' -fuzz "^$2\$" -fuzztime "${FUZZTIME:-10s}" -parallel 1 . </dev/null 2>&1 | tee "$log" && return
  [ "$(sed -n '/^--- FAIL: /,$p' "$log" | grep -v -e '^--- FAIL: ' -e '^FAIL' -e '^exit status 1')" = '    context deadline exceeded' ] || return 1
  echo "ok  $2: the time was over, and nothing was found"
}

git grep -o '^func Fuzz[A-Za-z]*' -- '*_test.go' | while IFS=: read -r file target; do
  target=${target#func }
  echo "$target of $(dirname "$file")"
  [ -n "$(git ls-files "$(dirname "$file")/testdata/fuzz/$target")" ] || { echo "$target has no corpus in testdata/fuzz" >&2; exit 1; }
  fuzz "$(dirname "$file")" "$target"
done
