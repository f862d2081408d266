package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
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

	named    = "app.kubernetes.io/name="
	replicas = named + "oncepay"
	ready    = "get deployment/oncepay --output=jsonpath={.status.readyReplicas}"
)

// step changes the cluster.
type step struct {
	name string
	do   action
	busy bool // more clients order meanwhile

	losesRedis bool
}

type action = func(context.Context) error

func (t *trial) steps(all bool) []step {
	update := commands("rollout restart deployment/oncepay")
	steps := []step{
		{name: "rolling update", do: update},
		{name: "`kill -9` of a replica", do: t.kill},
		{name: "`kubectl delete --force` of a replica", do: t.deleteByForce},
		{name: "`kubectl drain` of the node", do: drain},
		{name: "PostgreSQL replaced", do: replaced("statefulset/postgres")},
		{name: "PostgreSQL away for a minute", do: away("statefulset/postgres")},
		{name: "Redis replaced", do: replaced("deployment/redis"), losesRedis: true},
		{name: "Redis away for a minute", do: away("deployment/redis"), losesRedis: true},
		{name: fmt.Sprintf("%d orders a second until there are four replicas", limit), do: atMost, busy: true},
		{name: "rolling update of these four, at the same rate", do: update, busy: true},
	}
	if !all {
		return steps[:2]
	}
	return steps
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

// commands are those of kubectl.
func commands(lines ...string) action {
	return func(ctx context.Context) error {
		for _, line := range lines {
			if _, err := kubectl(ctx, line); err != nil {
				return err
			}
		}
		return nil
	}
}

// replaced deletes a server's pod, and waits for the next one.
func replaced(server string) action {
	return commands("delete pod --selector="+named+path.Base(server), "rollout status "+server+" --timeout=120s")
}

func away(server string) action {
	return then(
		commands("scale "+server+" --replicas=0", "wait --for=delete pod --selector="+named+path.Base(server)+" --timeout=120s"),
		func(ctx context.Context) error { return wait.Pause(ctx, absence) },
		commands("scale "+server+" --replicas=1", "rollout status "+server+" --timeout=120s"))
}

// whole waits until all replicas are ready, and no other is left.
func whole(ctx context.Context) error {
	if err := commands("rollout status deployment/oncepay --timeout=180s")(ctx); err != nil {
		return err
	}
	return until(ctx, "get deployment/oncepay --output=jsonpath={.spec.replicas}/{.status.readyReplicas}", func(counts string) bool {
		pods, err := kubectl(ctx, "get pods --output=name --selector="+replicas)
		n := len(strings.Fields(pods))
		return err == nil && counts == fmt.Sprintf("%d/%d", n, n)
	})
}

// until repeats a command of kubectl until it says what is wanted.
func until(ctx context.Context, line string, is func(answer string) bool) error {
	return wait.For(ctx, stepTimeout, time.Second, func(ctx context.Context) error {
		answer, err := kubectl(ctx, line)
		if err == nil && !is(answer) {
			err = fmt.Errorf("%s: %s", line, answer)
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
	status := "get pod " + pod + " --output=jsonpath={.status.containerStatuses[0]."
	container, err := kubectl(ctx, status+"containerID}")
	if err != nil {
		return err
	}
	if _, err := command(ctx, "ctr", "tasks", "kill", "--signal=SIGKILL", strings.TrimPrefix(container, "containerd://")); err != nil {
		return err
	}
	return until(ctx, status+"restartCount}", func(restarts string) bool { return restarts != "0" })
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
	left, err := kubectl(ctx, ready)
	if err == nil && left != "1" {
		err = fmt.Errorf("%s replicas are left, and the budget demands one", left)
	}
	uncordon := commands("uncordon node")
	if err := errors.Join(err, uncordon(ctx)); err != nil {
		return err
	}
	return errors.Join(<-drained, uncordon(ctx))
}

// atMost waits until the autoscaler has its maximum of replicas, and lets them serve.
func atMost(ctx context.Context) error {
	err := until(ctx, ready, func(count string) bool {
		n, _ := strconv.Atoi(count) // or none
		return n >= 4
	})
	return errors.Join(err, wait.Pause(ctx, atLimit))
}

// kubectl takes a command with spaces between its words.
func kubectl(ctx context.Context, line string) (string, error) {
	return command(ctx, "kubectl", strings.Fields(line)...)
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// watchMemory asks the kubelet every other second until ctx ends.
func (t *trial) watchMemory(ctx context.Context) {
	for wait.Pause(ctx, 2*time.Second) == nil {
		text, _ := kubectl(ctx, "get --raw /apis/metrics.k8s.io/v1beta1/namespaces/oncepay-development/pods")
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
				t.memory[c.Name] = max(t.memory[c.Name], used)
			}
		}
	}
}
