package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
)

const ours = "oncepay"

// contenders are middleware, by their names in loadtest/others, where a test sees that each of them
// replays.
var contenders = []struct{ Name, What string }{
	{"none", "no middleware"},
	{ours, "oncepay"},
	{"setnx", "SET NX"},
	{"setnx-autopipeline", "SET NX, AutoPipeline"},
	{"fiber", "Fiber 3.1.0 on fasthttp"},
}

// warmUp are the keys of requests that are not measured. What a connection repeats has an answer.
var warmUp = keys{"warm-up", 10}

// kinds of requests, with their keys.
var kinds = []struct {
	Name string
	keys keys
}{{"new keys", keys{"new", math.MaxInt}}, {"replays", warmUp}}

// middleware compares middleware on Redis, in front of a handler that does nothing.
func middleware(ctx context.Context, b *bench) (map[string]any, error) {
	redis, err := localserver.Redis.Start(ctx, localserver.Config{DieWithParent: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = redis.Stop() }()
	var trials []trial
	var groups, legend []string
	for _, connections := range b.cfg.connections {
		for _, kind := range kinds {
			groups = append(groups, fmt.Sprint(kind.Name, ", ", connections))
			for _, c := range contenders {
				trials = append(trials, trial{cell(c.Name, kind.Name, connections), func(ctx context.Context) (sample, error) {
					return b.contend(ctx, c.Name, redis, kind.keys, connections)
				}})
			}
		}
	}
	for _, c := range contenders {
		legend = append(legend, c.What)
	}
	found, err := b.interleave(ctx, b.cfg.rounds, trials)
	b.plots["middleware"] = drawBars("CPU of the server per request", groups, legend, func(group, contender int) float64 {
		return found.Of(trials[group*len(contenders)+contender].name, "server").median
	})
	return map[string]any{"found": found, "connections": b.cfg.connections, "kinds": kinds, "contenders": contenders, "ours": ours}, err
}

func cell(name, kind string, connections int) string {
	return fmt.Sprintf("%s, %s, %d connections", name, kind, connections)
}

// contend measures one server, which is started anew, on a Redis that is emptied.
func (b *bench) contend(ctx context.Context, name string, redis *localserver.Server, k keys, connections int) (s sample, err error) {
	if _, err := localserver.AskRedis(ctx, redis.Addr, "FLUSHALL"); err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, "go", "run", "-C", "loadtest/others", ".", "bench", name, redis.URL)
	server.Stderr = os.Stderr
	input, inputErr := server.StdinPipe() // the server ends with it
	output, outputErr := server.StdoutPipe()
	if err := cmp.Or(inputErr, outputErr, server.Start()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, input.Close(), server.Wait()) }()
	addr, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", server, err)
	}
	addr = strings.TrimSpace(addr)
	if _, err := drive(ctx, addr, connections, b.cfg.step/4, warmUp); err != nil {
		return nil, err
	}
	// The process is `go run`, which is idle, and the server is its child.
	return costing(map[int]string{server.Process.Pid: "server", redis.Process.PID: "redis"}, func() (sample, error) {
		return drive(ctx, addr, connections, b.cfg.step, k)
	})
}
