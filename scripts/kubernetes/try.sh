#!/usr/bin/env bash
# Tries deploy/kubernetes/development on a Kubernetes node of its own, and leaves nothing behind but
# the programs that it built (bin/kubernetes). No registry is needed: the node is built from Go
# modules (tools/kubernetes) and Debian packages, the images from scripts/airgap-images.sh.
#
#   scripts/kubernetes/try.sh            the tour, a rolling update and a replica's death under load
#   scripts/kubernetes/try.sh --all      and everything else of docs/operations.md#tried-on-a-node; ten minutes
#   scripts/kubernetes/try.sh --shell    only a shell on the node, with kubectl
#   scripts/kubernetes/try.sh --clean    removes what a try has left that was killed with SIGKILL
#
# The node is a tree of processes in namespaces of its own (network, mounts, processes), which ends
# with its first process. It needs root and a Docker engine.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "a node needs root: sudo $0 $*" >&2; exit 1; }

version=v1.34.4 # of k8s.io/kubernetes in tools/kubernetes/go.mod
bin=$PWD/bin/kubernetes dir=$PWD/.task/kubernetes

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
# quietly runs a command, and shows what it printed only if it fails.
quietly() { "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2 && return 1; }; }

# programs builds the node, if its versions have changed, and what measures.
programs() {
  mkdir -p "$bin"
  if [ ! "$bin/built" -nt tools/kubernetes/go.mod ]; then
    say "building Kubernetes $version, CoreDNS and metrics-server (minutes the first time)"
    (cd tools/kubernetes && CGO_ENABLED=0 go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
      -o "$bin/" ./coredns k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet,kubectl} \
      sigs.k8s.io/metrics-server/cmd/metrics-server)
    touch "$bin/built"
  fi
  go build -o "$bin/" ./loadtest/cluster
  quietly go tool -modfile=tools/go.mod task --silent image
}

# save writes the images into a file that the node reads.
save() {
  quietly scripts/airgap-images.sh
  quietly docker build --tag oncepay-airgap/pause:1 - <<'DOCKERFILE'
FROM oncepay-airgap/debian:trixie
CMD ["sleep", "infinity"]
DOCKERFILE
  docker save --output "$dir/images.tar" oncepay:local oncepay-tools:local oncepay-airgap/{pause:1,postgres:17,redis:8}
}

control_groups() { find /sys/fs/cgroup -depth -type d \( -path '*/kubepods*' -o -name k8s.io \) "$@"; }

# clean removes what outlives the node's processes: its files and its control groups.
clean() {
  trap '' INT TERM HUP
  control_groups -exec rmdir {} + 2>/dev/null || true
  rm -rf "$dir"
  docker image rm --no-prune oncepay-airgap/pause:1 >/dev/null 2>&1 || true
}

[ "${1-}" != --clean ] || { clean; exit; }
[ -z "$(control_groups)" ] || { echo "this machine has pods of a kubelet, or a try was killed: $0 --clean" >&2; exit 1; }
rm -rf "$dir"
mkdir -p "$dir"
trap clean EXIT
trap exit INT TERM HUP
programs
save
say "programs and images are built"
unshare --net --mount --propagation private --pid --fork --kill-child --mount-proc \
  scripts/kubernetes/node.sh "$bin" "$dir" "$SECONDS" "$@"
