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

const (
	// MasterName is what sentinels call the two servers that they watch.
	MasterName = "oncepay"

	// ReplicationUser is the name with which a replica logs in at its master, whichever of the two
	// servers that is. Switching the user off is what cuts them: a proxy cannot, because Sentinel
	// points a replica at the same address that it returns to clients.
	ReplicationUser = "replication"

	// sentinelConfig is what a sentinel starts with (sentinel.conf), for its port, MasterName, and
	// the master's host and port: the fast end of what production uses, so that clients do not wait
	// long for a failover. Its name of forty digits stays the same over a restart, so that the
	// others know it again. See
	// https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
	sentinelConfig = `sentinel myid %040[1]d
sentinel monitor %[2]s %[3]s 2
sentinel down-after-milliseconds %[2]s 1000
sentinel failover-timeout %[2]s 3000
`
)

// ReplicationSettings are those with which both servers of a pair start.
var ReplicationSettings = []string{
	"--user", ReplicationUser, "on", "nopass", "+psync", "+replconf", "+ping",
	"--masteruser", ReplicationUser, "--masterauth", "any",
	"--repl-diskless-sync-delay", "0", // there is one replica: no other to wait for
}

// Redis writes nothing to disk: a stop loses everything, which is the harshest case for those who
// use it.
var Redis = Kind{
	Program: programs.Redis, Image: Image{"REDIS_IMAGE", "redis:8.2.1", "oncepay-airgap/redis:8"}, URL: RedisURL, Probe: PingRedis,
	name: "redis", args: redisArgs, stop: syscall.SIGTERM, death: syscall.SIGKILL,
}

// redisArgs are the settings that differ from the defaults (redis.conf).
func redisArgs(_ context.Context, cfg Config, run Command) ([]string, error) {
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(cfg.Port), "--dir", run.Dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no"}
	return append(args, cfg.Settings...), nil
}

// Sentinel is one of the three that watch the master at an address (host:port) and its replica.
// Command writes its configuration anew: what it had learned and written into it may be outdated,
// and the others tell the rest.
func Sentinel(master string) Kind {
	kind := Redis
	kind.content = sentinelConfig // without the master, which may be another at the next look
	kind.args = func(ctx context.Context, cfg Config, run Command) ([]string, error) {
		path := filepath.Join(run.Dir, "sentinel.conf")
		text := fmt.Sprintf(sentinelConfig, cfg.Port, MasterName, strings.Replace(master, ":", " ", 1))
		args, err := redisArgs(ctx, cfg, run)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600), own(path, run.User))
		return append([]string{path, "--sentinel"}, args...), err
	}
	return kind
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
