// Package kubernetes_test checks deploy/kubernetes without a cluster: kustomize builds each
// overlay, every object is decoded strictly as its type of the Kubernetes API, and what objects say
// about each other must agree. It is a module of its own, because these types have many
// dependencies.
package kubernetes_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// overlays are whole: each is applied alone.
var overlays = []string{"development", "production"}

// kinds are the types of all objects that the manifests may have.
var kinds = map[string]any{
	"v1 Namespace": core.Namespace{}, "v1 Service": core.Service{}, "v1 ConfigMap": core.ConfigMap{}, "v1 Secret": core.Secret{},
	"apps/v1 Deployment": apps.Deployment{}, "apps/v1 StatefulSet": apps.StatefulSet{},
	"policy/v1 PodDisruptionBudget":          policy.PodDisruptionBudget{},
	"autoscaling/v2 HorizontalPodAutoscaler": autoscaling.HorizontalPodAutoscaler{},
	"networking.k8s.io/v1 NetworkPolicy":     networking.NetworkPolicy{}, "networking.k8s.io/v1 Ingress": networking.Ingress{},
	"monitoring.coreos.com/v1 ServiceMonitor": monitoring.ServiceMonitor{},
}

// objects are those of an overlay, by kind and name.
type objects map[string]any

// build does what "kubectl apply -k" would send.
func build(t *testing.T, overlay string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/kubernetes", overlay))
	require.NoError(t, err)
	all := objects{}
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		require.NoError(t, err)
		kind := resource.GetApiVersion() + " " + resource.GetKind()
		require.Contains(t, kinds, kind)
		object := reflect.New(reflect.TypeOf(kinds[kind])).Interface()
		require.NoError(t, yaml.UnmarshalStrict(text, object), "%s %s", kind, resource.GetName())
		all[resource.GetKind()+" "+resource.GetName()] = object
	}
	return all
}

// get returns an object of an overlay.
func get[T any](t *testing.T, all objects, name string) *T {
	t.Helper()
	object, ok := all[reflect.TypeFor[T]().Name()+" "+name].(*T)
	require.True(t, ok, name)
	return object
}

func each(t *testing.T, check func(t *testing.T, overlay string, all objects)) {
	t.Helper()
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			check(t, overlay, build(t, overlay))
		})
	}
}

// pods are the templates of all pods, by kind and name.
func (all objects) pods() map[string]core.PodTemplateSpec {
	pods := map[string]core.PodTemplateSpec{}
	for name, object := range all {
		switch object := object.(type) {
		case *apps.Deployment:
			pods[name] = object.Spec.Template
		case *apps.StatefulSet:
			pods[name] = object.Spec.Template
		}
	}
	return pods
}

func TestOverlays_HaveWhatAServiceNeeds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		for _, name := range []string{"Deployment oncepay", "Service oncepay", "PodDisruptionBudget oncepay",
			"HorizontalPodAutoscaler oncepay", "NetworkPolicy oncepay", "NetworkPolicy oncepay-" + overlay} {
			require.Contains(t, all, name)
		}
		production := overlay == "production"
		require.Equal(t, production, all["Ingress oncepay"] != nil)
		require.Equal(t, !production, all["StatefulSet postgres"] != nil)
	})
}

// A pod that ends answers until every node knows, and then drains for as long as it may.
func TestDeployment_UpdatesWithoutAGap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, all objects) {
		deployment := get[apps.Deployment](t, all, "oncepay")
		require.Equal(t, "0", deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.String())
		require.Nil(t, deployment.Spec.Replicas, "the autoscaler sets it")
		pod := deployment.Spec.Template.Spec
		pause := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		require.GreaterOrEqual(t, pause, 5*time.Second)
		drain, err := time.ParseDuration(settings(t)["SHUTDOWN_DEADLINE"])
		require.NoError(t, err)
		require.Greater(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, pause+drain)
		scaler := get[autoscaling.HorizontalPodAutoscaler](t, all, "oncepay")
		require.GreaterOrEqual(t, *scaler.Spec.MinReplicas, int32(2))
		require.Equal(t, "Deployment oncepay", scaler.Spec.ScaleTargetRef.Kind+" "+scaler.Spec.ScaleTargetRef.Name)
	})
}

// TestOverlays_CanBeAppliedAgain: a changed setting gives the ConfigMap another name, and a Job
// that refers to it cannot be changed. So init containers do what a release needs once.
func TestOverlays_CanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		steps := map[string][][]string{"development": {{"migrate", "up"}, {"seed"}}, "production": {{"migrate", "up"}}}
		var args [][]string
		for _, container := range all.pods()["Deployment oncepay"].Spec.InitContainers {
			args = append(args, container.Args)
		}
		require.Equal(t, steps[overlay], args)
	})
}

// TestOverlays_NeedNoOperator: kubectl fails at a kind that the cluster does not know.
func TestOverlays_NeedNoOperator(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, all objects) {
		for name, object := range all {
			require.IsNotType(t, &monitoring.ServiceMonitor{}, object, name)
		}
	})
}

func TestProbes_AskTheOperationsPort(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, all objects) {
		container := get[apps.Deployment](t, all, "oncepay").Spec.Template.Spec.Containers[0]
		ports := map[string]int32{}
		for _, p := range container.Ports {
			ports[p.Name] = p.ContainerPort
		}
		require.Equal(t, "/livez", container.LivenessProbe.HTTPGet.Path)
		require.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
		for _, probe := range []*core.Probe{container.LivenessProbe, container.ReadinessProbe} {
			require.Equal(t, int32(9081), ports[probe.HTTPGet.Port.StrVal])
		}
		for _, p := range get[core.Service](t, all, "oncepay").Spec.Ports {
			require.Contains(t, ports, p.TargetPort.StrVal)
		}
	})
}

// secrets of production are made by hand, from these files.
var secrets = map[string]string{"oncepay": "secret.env.example", "oncepay-migration": "migration.env.example"}

// Kustomize gives generated objects a name with a hash.
func TestPods_ReferToWhatExists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		for name, pod := range all.pods() {
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				for _, source := range container.EnvFrom {
					require.Nil(t, source.SecretRef, "%s: secrets are files", name)
					require.Contains(t, all, "ConfigMap "+source.ConfigMapRef.Name, name)
				}
				all.settingsOf(t, overlay, pod.Spec, container)
				for _, variable := range container.Env {
					if variable.ValueFrom != nil {
						require.Contains(t, get[core.Secret](t, all, variable.ValueFrom.SecretKeyRef.Name).Data, variable.ValueFrom.SecretKeyRef.Key, name)
					}
				}
			}
		}
	})
}

func TestSelectors_FindPods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ string, all objects) {
		for name, object := range all {
			var selector *meta.LabelSelector
			switch object := object.(type) {
			case *core.Service:
				selector = &meta.LabelSelector{MatchLabels: object.Spec.Selector}
			case *apps.Deployment:
				selector = object.Spec.Selector
			case *apps.StatefulSet:
				selector = object.Spec.Selector
			case *policy.PodDisruptionBudget:
				selector = object.Spec.Selector
			case *networking.NetworkPolicy:
				selector = &object.Spec.PodSelector
			default:
				continue
			}
			wanted, err := meta.LabelSelectorAsSelector(selector)
			require.NoError(t, err)
			found := 0
			for _, pod := range all.pods() {
				if wanted.Matches(labels.Set(pod.Labels)) {
					found++
				}
			}
			require.Equal(t, 1, found, "pods of one kind that %s selects", name)
		}
	})
}

func TestServiceMonitor_FindsTheService(t *testing.T) {
	t.Parallel()
	all := build(t, "production")
	monitor, service := get[monitoring.ServiceMonitor](t, build(t, "monitoring"), "oncepay"), get[core.Service](t, all, "oncepay")
	require.Equal(t, service.Namespace, monitor.Namespace)
	require.True(t, labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)))
	require.True(t, slices.ContainsFunc(service.Spec.Ports, func(p core.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port }))
	backend := get[networking.Ingress](t, all, "oncepay").Spec.Rules[0].HTTP.Paths[0].Backend.Service
	require.Equal(t, service.Name, backend.Name)
	require.Equal(t, service.Spec.Ports[0].Name, backend.Port.Name)
}

// TestIngress_PassesNoChangeOn that a replica may have executed and that may have no key. nginx
// counts PUT and DELETE as idempotent, and passes them on unless that is off.
func TestIngress_PassesNoChangeOn(t *testing.T) {
	t.Parallel()
	const nextUpstream = "nginx.ingress.kubernetes.io/proxy-next-upstream"
	all := build(t, "production")
	main, put := get[networking.Ingress](t, all, "oncepay"), get[networking.Ingress](t, all, "oncepay-put")
	require.Equal(t, "error timeout", main.Annotations[nextUpstream])
	require.Equal(t, "off", put.Annotations[nextUpstream])
	for _, ingress := range []*networking.Ingress{main, put} {
		require.Equal(t, "true", ingress.Annotations["nginx.ingress.kubernetes.io/force-ssl-redirect"])
	}
	require.Equal(t, map[string]string{"X-Request-Start": ""}, get[core.ConfigMap](t, all, "oncepay-ingress-headers").Data, "a client's is removed")
	bounds := []string{"limit-connections", "proxy-body-size", "proxy-buffering", "proxy-buffers-number", "proxy-buffer-size"} // as in nginx.conf
	for _, bound := range bounds {
		require.NotEmpty(t, main.Annotations["nginx.ingress.kubernetes.io/"+bound], bound)
		require.Equal(t, main.Annotations["nginx.ingress.kubernetes.io/"+bound], put.Annotations["nginx.ingress.kubernetes.io/"+bound], bound)
	}
	require.Equal(t, "95", main.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"], "longer than a payment may take")
	require.Equal(t, main.Spec.TLS, put.Spec.TLS)
	require.Equal(t, main.Spec.Rules[0].Host, put.Spec.Rules[0].Host)
	require.Equal(t, main.Spec.Rules[0].HTTP.Paths[0].Backend, put.Spec.Rules[0].HTTP.Paths[0].Backend)

	text, err := os.ReadFile(filepath.Join(root, "api/openapi.yaml"))
	require.NoError(t, err)
	var description struct{ Paths map[string]map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &description))
	found := 0
	for path, operations := range description.Paths {
		if operations["put"] == nil && operations["delete"] == nil {
			continue
		}
		found++
		require.True(t, slices.ContainsFunc(put.Spec.Rules[0].HTTP.Paths, func(p networking.HTTPIngressPath) bool {
			return strings.HasPrefix("/v1"+path, p.Path+"/")
		}), path)
	}
	require.NotZero(t, found)
}

// TestReplica_RequestsTheMemoryItWasSeenToUse: a pod above its request is the first to be evicted.
func TestReplica_RequestsTheMemoryItWasSeenToUse(t *testing.T) {
	t.Parallel()
	const measured = 92 << 20 // docs/operations.md#capacity
	each(t, func(t *testing.T, _ string, all objects) {
		memory := all.pods()["Deployment oncepay"].Spec.Containers[0].Resources
		require.GreaterOrEqual(t, memory.Requests.Memory().Value(), int64(measured))
		require.Greater(t, memory.Limits.Memory().Value(), memory.Requests.Memory().Value())
	})
}

// What a replica needs is set once: in the ConfigMap or in the Secret.
func TestSettings_ExistAndAreComplete(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		set, pod := map[string]bool{}, all.pods()["Deployment oncepay"].Spec
		for _, name := range all.settingsOf(t, overlay, pod, pod.Containers[0]) {
			require.Contains(t, settings(t), name)
			require.False(t, set[name], "%s is set twice", name)
			set[name] = true
		}
		provider := map[string][]string{"development": {"PSP_URL", "PSP_WEBHOOK_SECRET"}, "production": {"PSP", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"}}
		for _, name := range append(provider[overlay], "HTTP_ADDR", "OPS_ADDR", "DATABASE_URL", "REDIS_URL", "IDEMPOTENCY_RECORD_SECRETS") {
			require.True(t, set[name], name)
		}
	})
}

// TestMigration_HasASecretOfItsOwn: the replica does not get the user that may change the schema,
// and the migration gets nothing else. Without ENVIRONMENT it is production's, which refuses the
// PostgreSQL of development.
func TestMigration_HasASecretOfItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, overlay string, all objects) {
		pod := all.pods()["Deployment oncepay"].Spec
		set := []string{"DATABASE_URL", "DATABASE_SERVICE_ROLE"}
		if overlay == "development" {
			set = append(set, "DATABASE_SERVICE_PASSWORD", "ENVIRONMENT")
		}
		require.ElementsMatch(t, set, all.settingsOf(t, overlay, pod, pod.InitContainers[0]))
		require.NotEqual(t, secretAt(t, pod, pod.InitContainers[0].VolumeMounts[0].Name), secretAt(t, pod, pod.Containers[0].VolumeMounts[0].Name))
		require.Len(t, pod.Containers[0].VolumeMounts, 1)
	})
}

// settingsOf are the settings that a container gets: from ConfigMaps and its own variables, or from
// files of a Secret that is mounted, which has each of them.
func (all objects) settingsOf(t *testing.T, overlay string, pod core.PodSpec, container core.Container) (names []string) {
	t.Helper()
	variables := map[string]string{}
	for _, source := range container.EnvFrom {
		maps.Copy(variables, get[core.ConfigMap](t, all, source.ConfigMapRef.Name).Data)
	}
	for _, variable := range container.Env {
		variables[variable.Name] = variable.Value
	}
	for name, value := range variables {
		if setting, isFile := strings.CutSuffix(name, "_FILE"); isFile {
			folder, file := path.Split(value)
			mount := slices.IndexFunc(container.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath+"/" == folder })
			require.GreaterOrEqual(t, mount, 0, value)
			require.Contains(t, all.keysOf(t, overlay, secretAt(t, pod, container.VolumeMounts[mount].Name)), file)
			name = setting
		}
		names = append(names, name)
	}
	return names
}

// secretAt is the name of the Secret of a volume.
func secretAt(t *testing.T, pod core.PodSpec, volume string) string {
	t.Helper()
	i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == volume && v.Secret != nil })
	require.GreaterOrEqual(t, i, 0, volume)
	return pod.Volumes[i].Secret.SecretName
}

// keysOf are the keys of a Secret.
func (all objects) keysOf(t *testing.T, overlay, secret string) (names []string) {
	t.Helper()
	if overlay != "production" {
		return slices.Collect(maps.Keys(get[core.Secret](t, all, secret).Data))
	}
	require.Contains(t, secrets, secret)
	example, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/production", secrets[secret]))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^([A-Z_]+)=`).FindAllSubmatch(example, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

var field = regexp.MustCompile("`env:\"([A-Z_]+)\"(?: envDefault:\"([^\"]*)\")?`")

// settings are those of the service with their defaults.
func settings(t *testing.T) map[string]string {
	t.Helper()
	code, err := os.ReadFile(filepath.Join(root, "internal/app/config.go"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, found := range field.FindAllSubmatch(code, -1) {
		all[string(found[1])] = string(found[2])
	}
	require.Greater(t, len(all), 30)
	return all
}
