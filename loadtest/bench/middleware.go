package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	othersModule = "loadtest/others"
	// repeated is how many keys the replays take turns with.
	repeated = 50
	ours     = "oncepay"
	bare     = "none"
)

// contenders are middleware, by their names in loadtest/others, where a test sees that each of them
// replays.
var contenders = []struct{ Name, What string }{
	{bare, "no middleware"},
	{ours, "oncepay"},
	{"setnx", "SET NX"},
	{"setnx-autopipeline", "SET NX, AutoPipeline"},
	{"fiber", "Fiber 3.1.0 on fasthttp"},
}

// kinds of requests.
const newKeys, replays = "new keys", "replays"

// middleware compares middleware on Redis, in front of a handler that does nothing.
func middleware(ctx context.Context, b *bench) (map[string]any, error) {
	program, err := filepath.Abs(filepath.Join(outFolder, "others")) // go build -C is elsewhere
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(b.out, "  building %s\n", othersModule)
	if printed, err := exec.CommandContext(ctx, "go", "build", "-C", othersModule, "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", othersModule, err, printed)
	}
	redis, err := localserver.Redis.Start(ctx, localserver.Config{DieWithParent: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = redis.Stop() }()
	var trials []trial
	for _, connections := range b.cfg.connections {
		for _, kind := range []string{newKeys, replays} {
			for _, c := range contenders {
				trials = append(trials, trial{cell(c.Name, kind, connections), func(ctx context.Context) (sample, error) {
					return b.contend(ctx, program, redis, c.Name, kind, connections)
				}})
			}
		}
	}
	found, err := b.interleave(ctx, b.cfg.rounds, trials, "rate", "server", "redis")
	return b.middlewareFound(found), err
}

func cell(name, kind string, connections int) string {
	return fmt.Sprintf("%s, %s, %d connections", name, kind, connections)
}

// contend measures one server, which is started anew, on a Redis that is emptied.
func (b *bench) contend(ctx context.Context, program string, redis *localserver.Server, name, kind string, connections int) (s sample, err error) {
	if _, err := localserver.AskRedis(ctx, redis.Addr, "FLUSHALL"); err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, program, "bench", name, redis.URL)
	server.Stderr = os.Stderr
	input, inputErr := server.StdinPipe() // the server ends with it
	output, outputErr := server.StdoutPipe()
	if err := cmp.Or(inputErr, outputErr, server.Start()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, input.Close(), server.Wait()) }()
	addr, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	addr = strings.TrimSpace(addr)
	if err := checkReplays(ctx, addr, name != bare); err != nil {
		return nil, err
	}
	warm := func(connection, n int) string { return fmt.Sprintf("warm-%d-%d", connection, n) }
	if _, err := drive(ctx, addr, connections, b.cfg.step/4, warm); err != nil {
		return nil, err
	}
	key := func(connection, n int) string { return fmt.Sprintf("bench-%d-%d", connection, n) }
	if kind == replays {
		key = replayed
	}
	return costing(map[string][]int{"server": {server.Process.Pid}, "redis": {redis.Process.PID}}, func() (sample, error) {
		return drive(ctx, addr, connections, b.cfg.step, key)
	})
}

// replayed is a key that has been sent before.
func replayed(connection, n int) string {
	return fmt.Sprintf("replay-%d", (connection*7+n)%repeated)
}

func (b *bench) middlewareFound(found results) map[string]any {
	kinds := []string{newKeys, replays}
	var groups, legend []string
	for _, connections := range b.cfg.connections {
		for _, kind := range kinds {
			groups = append(groups, fmt.Sprint(kind, ", ", connections))
		}
	}
	for _, c := range contenders {
		legend = append(legend, c.What)
	}
	b.plots["middleware"] = drawBars("CPU of the server per request", groups, legend, func(group, contender int) float64 {
		return found.Of(cell(contenders[contender].Name, kinds[group%2], b.cfg.connections[group/2]), "server").median
	})
	return map[string]any{"found": found, "connections": b.cfg.connections, "kinds": kinds, "contenders": contenders, "ours": ours}
}
