#!/usr/bin/env bash
# A step of loadtest/cluster, on the node of try.sh: changes the cluster, and ends when it is whole again.
#   POD=the replica that has answered last step.sh update|kill|delete|drain|grow
#   step.sh replace|away SERVER
# POD, because the clients' connections may all be at one replica.
set -euo pipefail
ours=app.kubernetes.io/name=oncepay
patience=240 # seconds for what a step leads to: old replicas drain for up to 110

# within SECONDS COMMAND…: repeats a command until it succeeds.
within() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$end" ] || { echo "not within $1 s: ${*:2}" >&2; return 1; }
    sleep 1
  done
}
of_pod() { kubectl get pod "$POD" --output "jsonpath={.status.containerStatuses[0].$1}"; }
ready() { kubectl get deployment/oncepay --output 'jsonpath={.status.readyReplicas}'; }
rolled_out() { kubectl rollout status "$1" --timeout 180s; }

is_restarted() { [ "$(of_pod restartCount)" -gt 0 ]; }
has_grown() { [ "$(ready)" = 4 ]; }
# is_whole: all replicas are ready, and no other is left.
is_whole() {
  local pods
  pods=$(kubectl get pods --output name --selector $ours | wc -l)
  [ "$(kubectl get deployment/oncepay --output 'jsonpath={.spec.replicas}/{.status.readyReplicas}')" = "$pods/$pods" ]
}

kill_container() {
  local container
  container=$(of_pod containerID)
  ctr tasks kill --signal SIGKILL "${container#containerd://}"
  within $patience is_restarted
}
# drain evicts both replicas. The node takes no new pod, so the second one stays, as the disruption budget demands,
# until the node takes pods again.
drain() {
  local left
  timeout $patience kubectl drain node --pod-selector $ours --ignore-daemonsets &
  sleep 20
  left=$(ready)
  kubectl uncordon node
  [ "$left" = 1 ] || { echo "$left replicas are left, and the budget demands one" >&2; return 1; }
  wait $!
  kubectl uncordon node
}
away() {
  kubectl scale "$1" --replicas 0
  kubectl wait --for delete pod --selector "app.kubernetes.io/name=${1#*/}" --timeout 120s
  sleep 60
  kubectl scale "$1" --replicas 1
  rolled_out "$1"
}
replace() {
  kubectl delete pod --selector "app.kubernetes.io/name=${1#*/}"
  rolled_out "$1"
}
# grow waits for the autoscaler's last replica, and lets it serve for a while.
grow() {
  within $patience has_grown
  sleep 20
}

case $1 in
  update) kubectl rollout restart deployment/oncepay ;;
  kill) kill_container ;;
  delete) kubectl delete pod "$POD" --force --grace-period 0 ;;
  drain | grow) "$1" ;;
  replace | away) "$1" "$2" ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
rolled_out deployment/oncepay
within $patience is_whole
