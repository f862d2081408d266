package kubernetes_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	security "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestPods_MeetRestricted (Kubernetes, "Pod Security Standards"), which the namespace enforces.
func TestPods_MeetRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	restricted := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	each(t, func(t *testing.T, overlay string, all objects) {
		namespaces := 0
		for _, object := range all {
			if namespace, ok := object.(*core.Namespace); ok {
				namespaces++
				require.Equal(t, "restricted", namespace.Labels[security.EnforceLevelLabel])
			}
		}
		require.Equal(t, 1, namespaces)
		for name, pod := range all.pods() {
			verdict := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
			require.True(t, verdict.Allowed, "%s: %s", name, verdict.ForbiddenDetail())
			require.False(t, *pod.Spec.AutomountServiceAccountToken, name)
		}
	})
}

func TestPods_OfOursAreReadOnlyAndLimited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, all objects) {
		pod := all.pods()["Deployment oncepay"].Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem, container.Name)
			require.False(t, container.Resources.Limits.Memory().IsZero(), container.Name)
		}
	})
}

// TestImages_HaveAVersion: "postgres:17" is another program next month.
func TestImages_HaveAVersion(t *testing.T) {
	t.Parallel()
	versioned := regexp.MustCompile(`(:\d+\.\d+(\.\d+)?|@sha256:[0-9a-f]{64})$`)
	each(t, func(t *testing.T, overlay string, all objects) {
		for name, pod := range all.pods() {
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if overlay == "development" && slices.Contains([]string{"oncepay:local", "oncepay-tools:local"}, container.Image) { // just built
					continue
				}
				require.Regexp(t, versioned, container.Image, name)
			}
		}
	})
}

// TestNetwork_NamesBothEnds: a rule without a peer lets in, or out, whatever uses its port.
func TestNetwork_NamesBothEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		for name, object := range all {
			policy, ok := object.(*networking.NetworkPolicy)
			if !ok {
				continue
			}
			require.Equal(t, []networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress}, policy.Spec.PolicyTypes, name)
			for _, rule := range policy.Spec.Ingress {
				requirePeers(t, rule.From, len(rule.Ports))
			}
			for _, rule := range policy.Spec.Egress {
				requirePeers(t, rule.To, len(rule.Ports))
			}
		}
		http := get[networking.NetworkPolicy](t, all, "oncepay-"+overlay).Spec.Ingress
		require.Len(t, http, 1)
		if overlay == "production" {
			require.Equal(t, "ingress-nginx", http[0].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
		}
	})
}

// requirePeers rejects selectors that select everything.
func requirePeers(t *testing.T, peers []networking.NetworkPolicyPeer, ports int) {
	t.Helper()
	require.NotEmpty(t, peers)
	require.NotZero(t, ports)
	for _, peer := range peers {
		narrow := peer.IPBlock != nil && peer.IPBlock.CIDR != "0.0.0.0/0" ||
			peer.PodSelector != nil && len(peer.PodSelector.MatchLabels) > 0 ||
			peer.NamespaceSelector != nil && len(peer.NamespaceSelector.MatchLabels) > 0
		require.True(t, narrow, "%+v", peer)
	}
}
