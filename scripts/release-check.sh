#!/usr/bin/env bash
# What the release is made of: the toolchain is the pinned one, each module in it has a licence that
# allows our use, no secret is in the repository, and no vulnerability of it is known. It writes a list
# of all parts (SBOM, CycloneDX 1.5) to .task/sbom.json.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { printf '!! %s\n' "$*" >&2 && failed=1; }

# The release build, as `task build` makes it.
go tool -modfile=tools/go.mod task --silent build
release=bin/static/oncepay

# The image is built with the pinned version, and so is everything else.
pinned=go$(sed -n 's/^FROM golang:\([0-9.]*\) AS build$/\1/p' Dockerfile)
used=$(go version "$release" | awk '{print $2}')
[ "$used" = "$pinned" ] || complain "the release was built by $used, and Dockerfile says $pinned"
echo "toolchain: $used"

# Licences, by the words that each has and no other.
licence_of() {
  case $(tr -s '[:space:]' ' ' <"$1") in
    *'Mozilla Public License'*) echo MPL-2.0 ;;
    *'Apache License'*) echo Apache-2.0 ;;
    *'Permission is hereby granted, free of charge'*) echo MIT ;;
    *'Permission to use, copy, modify,'*) echo ISC ;;
    *'Redistribution and use in source and binary forms'*) echo BSD ;;
    *) echo unknown ;;
  esac
}
parts=.task/sbom.parts
mkdir -p .task
go version -m "$release" | awk '$1 == "dep" && $2 !~ /^github.com\/oncepay\// {print $2, $3}' | while read -r module version; do
  folder=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  file=$(find "$folder" -maxdepth 1 -iname 'licen[cs]e*' -o -maxdepth 1 -iname 'copying*' | sort | head -n 1)
  echo "$module $version $([ -n "$file" ] && licence_of "$file" || echo none)"
done >"$parts"
while read -r module version licence; do
  case $licence in MIT | BSD | ISC | Apache-2.0 | MPL-2.0) ;; *) complain "$module $version: licence $licence" ;; esac
done <"$parts"
[ -s "$parts" ] || complain "the release has no modules"
echo "licences: $(awk '{print $3}' "$parts" | sort | uniq -c | awk '{printf "%s%s %s", sep, $1, $2; sep = ", "}')"

jq -Rn --arg go "$used" --arg commit "$(git rev-parse HEAD)" '{bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
  metadata: {component: {type: "application", name: "oncepay", version: $commit}},
  components: ([{type: "platform", name: "go", version: $go}] + [inputs | split(" ") |
    {type: "library", name: .[0], version: .[1], purl: "pkg:golang/\(.[0])@\(.[1])", licenses: [{license: {name: .[2]}}]}])}' \
  <"$parts" >.task/sbom.json
echo "SBOM: .task/sbom.json, $(jq '.components | length' .task/sbom.json) parts"

# Secrets: what no file may have, but for the published secret of the local deployment and those that tests sign with.
secrets='-----BEGIN [A-Z ]*PRIVATE KEY-----|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[baprs]-[0-9A-Za-z-]{10}|sk_live_[0-9A-Za-z]{16}|whsec_[A-Za-z0-9+/]{32}'
found=$(git grep -nIE -e "$secrets" -- ':!scripts/release-check.sh' | grep -v 'whsec_Zm9yIGRldmVsb3BtZW50IG9ubHks' |
  grep -v '^[^:]*_test\.go:[0-9]*:.*whsec_' || true)
[ -z "$found" ] || complain "these look like secrets:"$'\n'"$(cut -d: -f1,2 <<<"$found")"
echo "secrets: looked at $(git ls-files | wc -l) files"

# Vulnerabilities that the release can reach, where the database answers.
if curl -fsS -m 10 -o /dev/null "${GOVULNDB:-https://vuln.go.dev}/index/db.json" 2>/dev/null; then
  go tool -modfile=tools/vuln/go.mod govulncheck -mode=binary "$release" || complain "govulncheck"
else
  echo "vulnerabilities: NOT CHECKED, the database ${GOVULNDB:-https://vuln.go.dev} does not answer"
fi
exit "$failed"
