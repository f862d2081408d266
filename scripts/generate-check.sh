#!/usr/bin/env bash
# Generates all generated code again, and fails if a committed file was not up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

generated() {
  { find api -name '*.gen.go' && ls api/oncepay.* docs/operations.md && find internal/postgres/internal/dbsqlc -name '*.go'; } | sort | xargs sha256sum
}

before=$(generated)
"$@"
after=$(generated)
if [ "$before" != "$after" ]; then
  echo "generated code was not up to date; these files have changed:" >&2
  diff <(echo "$before") <(echo "$after") | sed -n 's/^> [0-9a-f]*  /  /p' >&2
  exit 1
fi
echo "generated code is up to date"
