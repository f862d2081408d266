package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	othersModule = "loadtest/others"
	// repeated is how many keys the replays take turns with.
	repeated = 50
	// endTimeout is what a server has to end after its input has.
	endTimeout = 5 * time.Second
)

// contender is a middleware, by its name in loadtest/others.
type contender struct{ name, what string }

const (
	ours    = "oncepay"
	nothing = "none"
)

var contenders = []contender{
	{nothing, "no middleware"},
	{ours, "oncepay"},
	{"setnx", "SET NX"},
	{"setnx-autopipeline", "SET NX, AutoPipeline"},
	{"fiber", "Fiber 3.1.0 on fasthttp"},
}

// kinds of requests.
const newKeys, replays = "new keys", "replays"

// middleware compares middleware on Redis, in front of a handler that does nothing.
func middleware(ctx context.Context, b *bench) (section, error) {
	program := filepath.Join(b.bin, "others")
	fmt.Fprintf(b.out, "  building %s\n", othersModule)
	if printed, err := exec.CommandContext(ctx, "go", "build", "-C", othersModule, "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		return section{}, fmt.Errorf("build %s: %w\n%s", othersModule, err, printed)
	}
	redis, err := localserver.StartRedis(ctx, localserver.RedisConfig{DieWithParent: true})
	if err != nil {
		return section{}, err
	}
	defer func() { _ = redis.Stop() }()
	var trials []trial
	for _, connections := range b.cfg.connections {
		for _, kind := range []string{newKeys, replays} {
			for _, c := range contenders {
				trials = append(trials, trial{cell(c.name, kind, connections), func(ctx context.Context) (sample, error) {
					return b.contend(ctx, program, redis, c.name, kind, connections)
				}})
			}
		}
	}
	found, err := b.interleave(ctx, trials, "rate", "server", "redis")
	if err != nil {
		return section{}, err
	}
	return middlewareSection(b, found)
}

func cell(name, kind string, connections int) string {
	return fmt.Sprintf("%s, %s, %d connections", name, kind, connections)
}

// contend measures one server, which is started anew, on a Redis that is emptied.
func (b *bench) contend(ctx context.Context, program string, redis *localserver.Server, name, kind string, connections int) (s sample, err error) {
	if _, err := localserver.AskRedis(ctx, redis.Addr, "FLUSHALL"); err != nil {
		return nil, err
	}
	server, err := startServer(ctx, program, name, redis.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.end()) }()
	if err := checkReplays(ctx, server.addr, name != nothing); err != nil {
		return nil, err
	}
	key := func(connection, n int) string { return fmt.Sprintf("bench-%d-%d", connection, n) }
	if kind == replays {
		key = func(connection, n int) string { return fmt.Sprintf("replay-%d", (connection*7+n)%repeated) }
	}
	warm := func(connection, n int) string { return fmt.Sprintf("warm-%d-%d", connection, n) }
	if _, _, err := drive(ctx, server.addr, connections, b.cfg.step/4, warm); err != nil {
		return nil, err
	}
	return measureServer(ctx, server, redis, connections, b.cfg.step, key)
}

func measureServer(ctx context.Context, server *server, redis *localserver.Server, connections int, period time.Duration, key func(connection, n int) string) (sample, error) {
	var rate float64
	s, err := costing(map[string][]int{"server": {server.cmd.Process.Pid}, "redis": {redis.Process.PID}}, func() (n int, err error) {
		n, rate, err = drive(ctx, server.addr, connections, period, key)
		return n, err
	})
	if err != nil {
		return nil, err
	}
	s["rate"] = rate
	return s, nil
}

// checkReplays sends each key that is repeated twice: a middleware that executes it again must not
// be measured.
func checkReplays(ctx context.Context, addr string, want bool) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for i := range repeated {
		first, err := c.post(fmt.Sprintf("replay-%d", i))
		if err != nil {
			return err
		}
		again, err := c.post(fmt.Sprintf("replay-%d", i))
		if err != nil {
			return err
		}
		if (first == again) != want {
			return fmt.Errorf("the answers to one key are %s and %s", first, again)
		}
	}
	return nil
}

// server is a process that ends with its input.
type server struct {
	addr  string
	cmd   *exec.Cmd
	input io.Closer
}

func startServer(ctx context.Context, program, name, redisURL string) (*server, error) {
	cmd := exec.CommandContext(ctx, program, "bench", name, redisURL)
	cmd.Stderr, cmd.WaitDelay = os.Stderr, endTimeout
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, input: input}
	addr, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, errors.Join(err, s.end()))
	}
	s.addr = strings.TrimSpace(addr)
	return s, nil
}

// end waits until the process has ended.
func (s *server) end() error {
	kill := time.AfterFunc(endTimeout, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	return errors.Join(s.input.Close(), s.cmd.Wait())
}

func middlewareSection(b *bench, found results) (section, error) {
	s := section{title: "Middleware on Redis", text: `Each middleware is a server of its own, as its makers deliver it, on the same Redis, in front of the same handler, which
answers 201 with a few bytes of JSON. The client is closed-loop: each connection sends its next request when the last is
answered. SET NX is the recipe of [loadtest/others/setnx.go](others/setnx.go): no fingerprint, no owner, no heartbeat.
Fiber's middleware locks within one process. What each of them does wrong when something fails is in
[OTHERS.md](OTHERS.md).`}
	var bars []bar
	for _, connections := range b.cfg.connections {
		for _, kind := range []string{newKeys, replays} {
			t := table{command: "go run ./loadtest/bench -parts middleware",
				header: []string{fmt.Sprintf("%s, %d connections", kind, connections), "requests/s", "server CPU µs/request", "Redis CPU µs/request", "requests/s ÷ oncepay's", "server CPU ÷ oncepay's"}}
			group := bar{name: fmt.Sprintf("%s, %d", kind, connections)}
			for _, c := range contenders {
				name, own := cell(c.name, kind, connections), cell(ours, kind, connections)
				t.add(c.what, found.of(name, "rate").String(), found.of(name, "server").String(), found.of(name, "redis").String(),
					found.ratio(name, own, "rate").String(), found.ratio(name, own, "server").String())
				group.values = append(group.values, found.of(name, "server").median)
			}
			s.tables, bars = append(s.tables, t), append(bars, group)
		}
	}
	names := make([]string, len(contenders))
	for i, c := range contenders {
		names[i] = c.what
	}
	path := b.plot("middleware")
	s.plots = []picture{{path, "CPU of the server per request, by middleware"}}
	return s, drawBars(path, "CPU of the server per request", "µs", names, bars)
}
