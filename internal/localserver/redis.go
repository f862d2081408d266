package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/programs"
)

// Redis writes nothing to disk: a stop loses everything, which is the harshest case for those who
// use it.
var Redis = Kind{
	Program: programs.Redis, Image: Image{"REDIS_IMAGE", "redis:8.2.1", "oncepay-airgap/redis:8"}, URL: RedisURL, Probe: PingRedis,
	name: "redis", args: redisArgs, stop: syscall.SIGTERM, death: syscall.SIGKILL,
}

// redisArgs are the settings that differ from the defaults (redis.conf).
func redisArgs(_ context.Context, cfg Config, run Command) (args []string, _ error) {
	if cfg.ConfigFile != "" {
		path := filepath.Join(run.Dir, "redis.conf")
		if err := errors.Join(os.WriteFile(path, []byte(cfg.ConfigFile), 0o600), own(path, run.User)); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	args = append(args, "--bind", "127.0.0.1", "--port", strconv.Itoa(cfg.Port), "--dir", run.Dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no")
	return append(args, cfg.Settings...), nil
}

// RedisURL is the connection URL of a Redis at addr (host:port).
func RedisURL(addr string) string { return "redis://" + addr + "/0" }

// PingRedis asks whether a server answers.
func PingRedis(ctx context.Context, addr string) error {
	_, err := AskRedis(ctx, addr, "PING")
	return err
}

// AskRedis sends one command over a connection of its own, and returns the elements of the answer,
// or the lines of a text. It never sends the command again, and waits for up to [ProbeTimeout].
func AskRedis(ctx context.Context, addr string, command ...any) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr) // the client would log that it was refused
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		PoolSize: 1, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	defer func() { _, _ = client.Close(), conn.Close() }()
	answer, err := client.Do(ctx, command...).Result()
	list, ok := answer.([]any)
	if !ok {
		return strings.Split(strings.ReplaceAll(fmt.Sprint(answer), "\r", ""), "\n"), err
	}
	for _, one := range list {
		lines = append(lines, fmt.Sprint(one))
	}
	return lines, err
}
