#!/usr/bin/env bash
# Lists the Go packages that have tests: `unit` those that need no server,
# `integration` those whose tests start PostgreSQL or Redis, `console` the one that presses the
# console's buttons: it needs the machine more than others, so it is a suite of its own. tests/upgrade
# belongs to `task test:upgrade`: it needs git's history. `security` has the attacks on a stack of their own.
# tests/image needs a Docker engine.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  unit) servers=0 ;;
  integration) servers=1 ;;
  console | security) echo "github.com/oncepay/oncepay/tests/$1" && exit ;;
  *) echo "usage: scripts/packages.sh unit|integration|console|security" >&2 && exit 2 ;;
esac
# The pattern matches the library's modules, too; ./... stops at their go.mod.
# A package's test binary is listed as PACKAGE.test, with all that it links.
go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}} {{end}}' github.com/oncepay/oncepay/... |
  awk -v want="$servers" '$1 ~ /\.test$/ && $1 !~ /\/tests\/(console|image|security|upgrade)\.test$/ { servers = / github.com\/oncepay\/oncepay\/internal\/(testenv|localserver) / ? 1 : 0; if (servers == want) print substr($1, 1, length($1) - 5) }'
