#!/usr/bin/env bash
# Runs every fuzz target of the tree for FUZZTIME (10s), one after the other, each in one process. What
# fails is written into testdata/fuzz beside its target: commit it with the correction.
set -euo pipefail
cd "$(dirname "$0")/.."

git grep -o '^func Fuzz[A-Za-z]*' -- '*_test.go' | while IFS=: read -r file target; do
  target=${target#func }
  echo "$target of $(dirname "$file")"
  [ -n "$(git ls-files "$(dirname "$file")/testdata/fuzz/$target")" ] || { echo "$target has no corpus in testdata/fuzz" >&2; exit 1; }
  go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" -parallel 1 . </dev/null
done
