package kubernetes_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
)

// TestPostgres_HasConnectionsForTwiceTheReplicas: pods that drain do not count as replicas, so an
// update has as many of the old ones as of the new ones for a while.
func TestPostgres_HasConnectionsForTwiceTheReplicas(t *testing.T) {
	t.Parallel()
	const others = 20 // migrations, people, and PostgreSQL's own three
	all := build(t, "development")
	args := strings.Join(get[apps.StatefulSet](t, all, "postgres").Spec.Template.Spec.Containers[0].Args, " ")
	found := regexp.MustCompile(`max_connections=(\d+)`).FindStringSubmatch(args)
	require.NotNil(t, found, args)
	has, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	each, err := strconv.Atoi(settings(t)["DATABASE_MAX_CONNS"])
	require.NoError(t, err)
	replicas := int(get[autoscaling.HorizontalPodAutoscaler](t, all, "oncepay").Spec.MaxReplicas)
	require.GreaterOrEqual(t, has, 2*replicas*each+others)
}

// TestServers_KeepTheirAddress: the address of a headless Service is the pod's own. Replicas that
// knew it waited for 34 s after the pod was replaced.
func TestServers_KeepTheirAddress(t *testing.T) {
	t.Parallel()
	all := build(t, "development")
	for _, name := range []string{"postgres", "redis", "pspsim"} {
		require.NotEqual(t, core.ClusterIPNone, get[core.Service](t, all, name).Spec.ClusterIP, name)
	}
}

// TestServers_AreReadyWhereTheyAreAsked: a server that listens on loopback alone, or that is in
// protected mode, answers a probe that asks there.
func TestServers_AreReadyWhereTheyAreAsked(t *testing.T) {
	t.Parallel()
	pods := build(t, "development").pods()
	for _, name := range []string{"StatefulSet postgres", "Deployment redis"} {
		container := pods[name].Spec.Containers[0]
		probe := strings.Join(container.ReadinessProbe.Exec.Command, " ")
		require.Contains(t, probe, `-h "$HOSTNAME"`, name)
		require.True(t, strings.HasPrefix(probe, "sh -c "), "%s: nothing else expands the variable", name)
	}
	redis := pods["Deployment redis"].Spec.Containers[0]
	require.Equal(t, "redis-server --protected-mode no", strings.Join(redis.Command[:3], " "), "whatever the image runs by itself")
	require.Contains(t, fmt.Sprint(pods["StatefulSet postgres"].Spec.Containers[0].Args), "listen_addresses=*")
}
