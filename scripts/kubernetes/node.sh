#!/usr/bin/env bash
# The node of try.sh: its first process. When it ends, so does everything on the node.
#   node.sh BIN DIR SECONDS [--all|--shell]
set -euo pipefail
bin=$1 dir=$2 what=${4-}
SECONDS=$3
settings=$PWD/scripts/kubernetes/settings run=/run/try namespace=oncepay-development
export PATH=$bin:$PATH:/usr/sbin KUBECONFIG=$run/admin.conf CONTAINERD_ADDRESS=$run/containerd.sock CONTAINERD_NAMESPACE=k8s.io
as=(--kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG")

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
trap 'status=$?; [ $status = 0 ] || tail -n 5 "$run"/log/* >&2; exit $status' EXIT

# start NAME COMMAND…
start() { "${@:2}" >"$run/log/$1" 2>&1 & }
# wait_for SECONDS COMMAND…
wait_for() {
  local end=$((SECONDS + $1))
  until "${@:2}" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "not within $1 s: ${*:2}" >&2; return 1; }
    sleep 0.2
  done
}
filled() { sed "s,@DIR@,$dir,g; s,@SETTINGS@,$settings,g" "$settings/$1"; }

# machine makes mounts, a network and settings of the kernel that are the node's own.
machine() {
  local folder setting
  mount --make-rshared /
  for folder in /run /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers; do
    mkdir -p "$folder"
    mount -t tmpfs tmpfs "$folder"
    mount --make-rshared "$folder"
  done
  mkdir -p $run/log $run/kernel
  # The kubelet only looks at these. Writing them would change them for the machine.
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    echo "${setting#*=}" >"$run/kernel/$(basename "${setting%=*}")"
    mount --bind "$run/kernel/$(basename "${setting%=*}")" "/proc/sys/${setting%=*}"
  done
  ip link set lo up
  ip addr add 169.254.20.10/32 dev lo # of the DNS server
  ip link add eth0 type veth peer name wire
  ip link set wire up
  ip link set eth0 up
  ip addr add 10.250.0.1/24 dev eth0
  ip route add default via 10.250.0.254
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
  echo nameserver 192.0.2.1 >$run/resolv.conf # documentation (RFC 5737): nothing outside is asked
}

# control_plane authorizes everybody: the node has one user, and only its own processes reach it.
control_plane() {
  local token etcd=127.0.0.1:2379
  token=$(openssl rand -hex 16)
  openssl genrsa -out $run/accounts.key 2048 2>/dev/null
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=front-proxy -keyout $run/proxy.key -out $run/proxy.crt 2>/dev/null
  echo "$token,admin,admin,system:masters" >$run/tokens.csv
  cat >$KUBECONFIG <<-CONF
	apiVersion: v1
	kind: Config
	clusters: [{ name: try, cluster: { server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true } }]
	users: [{ name: admin, user: { token: "$token" } }]
	contexts: [{ name: try, context: { cluster: try, user: admin } }]
	current-context: try
	CONF
  start etcd etcd --data-dir $run/etcd --unsafe-no-fsync --listen-client-urls http://$etcd --advertise-client-urls http://$etcd
  start containerd containerd --config <(filled containerd.toml)
  start apiserver kube-apiserver --etcd-servers http://$etcd --advertise-address 10.250.0.1 --cert-dir $run/apiserver \
    --token-auth-file $run/tokens.csv --authorization-mode AlwaysAllow --service-cluster-ip-range 10.96.0.0/16 \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file $run/accounts.key \
    --service-account-signing-key-file $run/accounts.key --requestheader-client-ca-file $run/proxy.crt \
    --proxy-client-cert-file $run/proxy.crt --proxy-client-key-file $run/proxy.key \
    --kubelet-preferred-address-types InternalIP
  wait_for 60 kubectl get --raw /readyz
  start controllers kube-controller-manager "${as[@]}" --leader-elect=false --cert-dir $run/controllers --service-account-private-key-file $run/accounts.key \
    --root-ca-file $run/apiserver/apiserver.crt --cluster-cidr 10.244.0.0/16 --horizontal-pod-autoscaler-downscale-stabilization 30s
  start scheduler kube-scheduler "${as[@]}" --leader-elect=false --cert-dir $run/scheduler
}

node() {
  local image
  ctr images import "$dir/images.tar" >/dev/null
  for image in postgres:17 redis:8; do # as the manifests call them
    ctr images tag "docker.io/oncepay-airgap/$image" "docker.io/library/$(grep -oh "$image[0-9.]*" deploy/kubernetes/development/*.yaml)" >/dev/null
  done
  start kubelet kubelet --kubeconfig "$KUBECONFIG" --config "$settings/kubelet.yaml" --cert-dir $run/kubelet --hostname-override node --node-ip 10.250.0.1
  start proxy kube-proxy --config "$settings/kube-proxy.yaml"
  start dns coredns -conf "$settings/Corefile"
  start metrics metrics-server "${as[@]}" --cert-dir $run/metrics --secure-port 4443 \
    --kubelet-insecure-tls --kubelet-preferred-address-types InternalIP --metric-resolution 15s
  mkdir -pm 777 "$dir/volume"
  wait_for 60 kubectl wait --for=condition=Ready node/node --timeout=1s
  filled cluster.yaml | kubectl apply -f - >/dev/null
}

# apply is what an owner of a cluster runs, also twice.
apply() {
  kubectl apply -k deploy/kubernetes/development >/dev/null
  kubectl config set-context --current --namespace $namespace >/dev/null
  local rollout
  for rollout in statefulset/postgres deployment/redis deployment/pspsim deployment/oncepay; do
    kubectl rollout status $rollout --timeout 120s >/dev/null
  done
  wait_for 60 kubectl wait deployment/oncepay --for 'jsonpath={.status.readyReplicas}=2' --timeout 1s # the autoscaler's first pass
  kubectl apply -k deploy/kubernetes/development >/dev/null
}

# memory notes what each container uses, until the node ends.
memory() { while sleep 5; do kubectl top pod --containers --no-headers; done; }

service() { kubectl get service "$1" --output 'jsonpath={.spec.clusterIP}'; }

machine
control_plane
node
say "the node is ready"
[ "$what" != --shell ] || { apply; bash; exit; }
apply
say "the service is ready: two replicas"
BASE_URL=http://$(service oncepay) PSP_URL=http://$(service pspsim):8090
DATABASE_URL="postgres://oncepay:oncepay@$(service postgres):5432/oncepay?sslmode=disable" REDIS_ADDR=$(service redis):6379
export BASE_URL PSP_URL DATABASE_URL REDIS_ADDR
scripts/readme-tour.sh >$run/log/tour || { cat $run/log/tour; exit 1; }
say "the tour of the README works"
start memory memory
cluster ${what:+"$what"}
echo "most memory of a container:$(sort -rhk4 $run/log/memory | awk '$4 ~ /i$/ && !seen[$2]++ { printf " %s %s", $2, $4 }')"
say "done"
