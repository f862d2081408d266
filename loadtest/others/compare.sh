#!/usr/bin/env bash
# Runs the fault campaign on oncepay and on other systems in turn, with the same
# seeds and faults, and prints the scores side by side.
#
#   SYSTEMS="oncepay none" SEEDS="1 2" DURATION=3m loadtest/others/compare.sh
#
# Fails when oncepay broke a promise, or when a campaign proved nothing; what the
# others do is counted.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${FAULTS_OUT:-loadtest/out/others}
rm -rf "$out"
status=0
for seed in ${SEEDS:-1 2}; do
  for system in ${SYSTEMS:-oncepay authority setnx fiber-lock fiber none}; do
    SYSTEM=$system SEED=$seed DURATION=${DURATION:-3m} FAULTS_OUT=$out go run ./loadtest/faults || status=1
  done
done
jq --slurp --raw-output --from-file loadtest/others/table.jq "$out"/*.json
exit "$status"
