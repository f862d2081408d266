# shellcheck shell=bash
# What every scenario needs, so that it says at once what is missing. Part of lib.sh and run.sh.

for program in curl jq; do
  command -v "$program" >/dev/null || { echo "the scenarios need $program" >&2 && exit 2; }
done
url=${BASE_URL:-http://127.0.0.1:8080}
curl -sS -o /dev/null --max-time 5 "$url" || { echo "nothing answers at $url; start it with: go run ./cmd/stack up" >&2 && exit 2; }
