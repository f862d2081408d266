package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// absence is how long a server is away.
	absence = time.Minute
	// stepTimeout bounds the wait for what a step leads to: old replicas drain for up to 110 s.
	stepTimeout = 4 * time.Minute
	// atLimit is how long the autoscaler's last replica serves.
	atLimit = 20 * time.Second

	replicas = "app.kubernetes.io/name=oncepay"
)

// step changes the cluster, and returns when it is whole again.
type step struct {
	name string
	do   action
}

type action func(context.Context) error

func (t *trial) steps() []step {
	update := then(commands("rollout restart deployment/oncepay"), whole)
	quick := []step{
		{"rolling update", update},
		{"`kill -9` of a replica", then(t.kill, whole)},
	}
	if !t.cfg.all {
		return quick
	}
	return append(quick, []step{
		{"`kubectl delete --force` of a replica", then(t.deleteByForce, whole)},
		{"`kubectl drain` of the node", then(drain, whole)},
		{"PostgreSQL replaced", replaced("statefulset/postgres", "postgres")},
		{"PostgreSQL away for a minute", away("statefulset/postgres", "postgres")},
		{"Redis replaced", t.losesRedis(replaced("deployment/redis", "redis"))},
		{"Redis away for a minute", t.losesRedis(away("deployment/redis", "redis"))},
		{fmt.Sprintf("%d orders a second until there are four replicas", t.cfg.Limit), t.limit(atMost)},
		{"rolling update of these four, at the same rate", t.limit(update)},
	}...)
}

// then does one thing after the other, until one fails.
func then(actions ...action) action {
	return func(ctx context.Context) error {
		for _, do := range actions {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// commands are those of kubectl, with spaces between their words.
func commands(lines ...string) action {
	var all []action
	for _, line := range lines {
		all = append(all, func(ctx context.Context) error {
			_, err := kubectl(ctx, strings.Fields(line)...)
			return err
		})
	}
	return then(all...)
}

// replaced deletes a server's pod, and waits for the next one.
func replaced(of, name string) action {
	return then(commands("delete pod --selector app.kubernetes.io/name="+name, "rollout status "+of+" --timeout=120s"), whole)
}

func away(of, name string) action {
	return then(
		commands("scale "+of+" --replicas=0", "wait --for=delete pod --selector=app.kubernetes.io/name="+name+" --timeout=120s"),
		func(ctx context.Context) error { return wait.Pause(ctx, absence) },
		commands("scale "+of+" --replicas=1", "rollout status "+of+" --timeout=120s"), whole)
}

// whole waits until all replicas are ready, and no other is left.
func whole(ctx context.Context) error {
	if err := commands("rollout status deployment/oncepay --timeout=180s")(ctx); err != nil {
		return err
	}
	return wait.For(ctx, stepTimeout, time.Second, func(ctx context.Context) error {
		state, err := kubectl(ctx, "get", "deployment/oncepay", "--output=jsonpath={.spec.replicas} {.status.readyReplicas}")
		if err != nil {
			return err
		}
		pods, err := kubectl(ctx, "get", "pods", "--selector="+replicas, "--output=name")
		if n := len(strings.Fields(pods)); err == nil && state != fmt.Sprintf("%d %d", n, n) {
			err = fmt.Errorf("%d pods for %s replicas", n, state)
		}
		return err
	})
}

// serving is the pod that has answered last: the clients' connections may all be at one replica.
func (t *trial) serving() (pod string, err error) {
	for _, a := range slices.Backward(t.journal.Attempts()) {
		if a.Replica != "" {
			return a.Replica, nil
		}
	}
	return "", errors.New("no replica has answered")
}

func (t *trial) kill(ctx context.Context) error {
	pod, err := t.serving()
	if err != nil {
		return err
	}
	const status = "--output=jsonpath={.status.containerStatuses[0]."
	container, err := kubectl(ctx, "get", "pod", pod, status+"containerID}")
	if err != nil {
		return err
	}
	if _, err := command(ctx, "ctr", "tasks", "kill", "--signal=SIGKILL", strings.TrimPrefix(container, "containerd://")); err != nil {
		return err
	}
	return wait.For(ctx, stepTimeout, time.Second, func(ctx context.Context) error {
		restarts, err := kubectl(ctx, "get", "pod", pod, status+"restartCount}")
		if err == nil && restarts == "0" {
			err = fmt.Errorf("%s was not restarted", pod)
		}
		return err
	})
}

func (t *trial) deleteByForce(ctx context.Context) error {
	pod, err := t.serving()
	if err != nil {
		return err
	}
	return commands("delete pod " + pod + " --force --grace-period=0")(ctx)
}

// drain evicts both replicas. The node takes no new pod, so the second one stays, as the disruption
// budget demands, until the node takes pods again.
func drain(ctx context.Context) error {
	draining, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	drained := make(chan error, 1)
	go func() {
		drained <- commands("drain node --pod-selector=" + replicas + " --ignore-daemonsets")(draining)
	}()
	_ = wait.Pause(ctx, 20*time.Second)
	left, err := kubectl(ctx, "get", "deployment/oncepay", "--output=jsonpath={.status.readyReplicas}")
	if err == nil && left != "1" {
		err = fmt.Errorf("%s replicas are left, and the budget demands one", left)
	}
	uncordon := commands("uncordon node")
	if err := errors.Join(err, uncordon(ctx)); err != nil {
		return err
	}
	if err := <-drained; err != nil {
		return err
	}
	return uncordon(ctx)
}

// losesRedis notes when Redis was whole again: events of before may not be in its stream.
func (t *trial) losesRedis(do action) action {
	return func(ctx context.Context) error {
		defer func() { t.lost = time.Now() }()
		return do(ctx)
	}
}

// limit has more clients order while it does something.
func (t *trial) limit(do action) action {
	return func(ctx context.Context) error {
		more, stop := context.WithCancel(ctx)
		ordered := make(chan struct{})
		go func() { defer close(ordered); t.clients.Steady(more, t.cfg.Limit) }()
		err := do(ctx)
		stop()
		<-ordered
		return err
	}
}

// atMost waits until the autoscaler has its maximum of replicas, and lets them serve.
func atMost(ctx context.Context) error {
	err := wait.For(ctx, stepTimeout, time.Second, func(ctx context.Context) error {
		counts, err := kubectl(ctx, "get", "deployment/oncepay", "--output=jsonpath={.status.readyReplicas}")
		if n, _ := strconv.Atoi(counts); err == nil && n < 4 {
			err = fmt.Errorf("%s replicas", counts)
		}
		return err
	})
	if err != nil {
		return err
	}
	return wait.Pause(ctx, atLimit)
}

func kubectl(ctx context.Context, args ...string) (string, error) {
	return command(ctx, "kubectl", args...)
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// peaks are the most memory that containers used. The zero value is ready; it is written by watch
// alone.
type peaks struct{ of map[string]int64 }

// watch asks the kubelet every other second until ctx ends.
func (p *peaks) watch(ctx context.Context) {
	p.of = map[string]int64{}
	for wait.Pause(ctx, 2*time.Second) == nil {
		text, _ := kubectl(ctx, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/oncepay-development/pods")
		var list struct {
			Items []struct {
				Containers []struct {
					Name  string
					Usage struct{ Memory string }
				}
			}
		}
		_ = json.Unmarshal([]byte(text), &list) // or the next time
		for _, pod := range list.Items {
			for _, c := range pod.Containers {
				used, _ := strconv.ParseInt(c.Usage.Memory, 10, 64)
				p.of[c.Name] = max(p.of[c.Name], used)
			}
		}
	}
}

func (p *peaks) String() string {
	text := "most memory of a container:"
	for _, name := range []string{"oncepay", "postgres", "redis", "pspsim"} {
		text += fmt.Sprintf(" %s %d MiB", name, p.of[name]>>20)
	}
	return text
}
