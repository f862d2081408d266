#!/usr/bin/env bash
# Builds oncepay of the commit in tests/upgrade/base, the release before this one, with failpoints, and
# prints the program's path. It is built once.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$(cat tests/upgrade/base)
program=$PWD/.task/upgrade/oncepay-$commit
if [ ! -x "$program" ]; then
  git cat-file -e "$commit^{commit}" 2>/dev/null || {
    echo "this clone does not have commit $commit of tests/upgrade/base; get it by: git fetch --unshallow" >&2
    exit 1
  }
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  git archive "$commit" | tar -x -C "$tree"
  mkdir -p "${program%/*}"
  go build -C "$tree" -buildvcs=false -ldflags='-s -w' -tags=failpoints -o "$program.new" ./cmd/oncepay >&2
  mv "$program.new" "$program"
fi
echo "$program"
