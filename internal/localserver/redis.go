package localserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/oncepay/oncepay/internal/programs"
)

// redisConfigFile is the name of the configuration file in the server's directory.
const redisConfigFile = "redis.conf"

// RedisConfig says how StartRedis runs a server.
type RedisConfig struct {
	// Dir is the server's working directory and holds its log. Empty, or out of reach for the user
	// that the server runs as when we are root: a temporary directory that Stop removes.
	Dir string
	// Port to listen on at 127.0.0.1; 0 takes a free one.
	Port int
	// Log is the file for the server's output; empty: redis.log in Dir.
	Log string
	// Settings are further ones, as on the command line: "--maxmemory", "1mb". They win over ours.
	Settings []string
	// ConfigFile is the content of a configuration file. A Sentinel needs one, to which it then
	// adds what it learns.
	ConfigFile string
	// DieWithParent stops the server when this process dies, however it dies (Linux only).
	DieWithParent bool
}

// StartRedis starts a private Redis and waits until it answers. It writes nothing to disk: a stop
// loses everything, which is the harshest case for those who use it. On an error nothing is left
// running.
func StartRedis(ctx context.Context, cfg RedisConfig) (*Server, error) {
	port, err := HoldPort(cfg.Port)
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	cfg.Port = port.Number
	run, temporary, err := RedisCommand(cfg)
	if err != nil {
		port.Release()
		return nil, fmt.Errorf("prepare Redis: %w", err)
	}
	server, err := startServer(ctx, run, port, serverKind{RedisURL, syscall.SIGTERM, PingRedis})
	if err != nil {
		if temporary {
			_ = os.RemoveAll(run.Dir)
		}
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	server.temporary = temporary
	return server, nil
}

// RedisCommand finds the program and makes its directory. It reports whether that is a temporary
// one.
func RedisCommand(cfg RedisConfig) (run Command, temporary bool, err error) {
	program, err := programs.Redis.Find()
	if err != nil {
		return run, false, err
	}
	user, err := Unprivileged()
	if err != nil {
		return run, false, err
	}
	dir, temporary, err := ServerDir(cfg.Dir, "redis", user)
	if err != nil {
		return run, false, err
	}
	if err := cfg.writeFile(dir, user); err != nil {
		return run, false, err
	}
	return Command{
		Path: program, Args: cfg.args(dir, cfg.Port), Env: []string{ServerPath},
		Dir: dir, Log: logFile(cfg.Log, dir, "redis"), User: user,
		ParentDeath: signalIf(cfg.DieWithParent, syscall.SIGKILL),
	}, temporary, nil
}

// RedisURL is the connection URL of a Redis at addr (host:port).
func RedisURL(addr string) string { return "redis://" + addr + "/0" }

// args are the settings that differ from the defaults (redis.conf).
func (cfg RedisConfig) args(dir string, port int) (args []string) {
	if cfg.ConfigFile != "" {
		args = append(args, filepath.Join(dir, redisConfigFile))
	}
	args = append(args,
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(port),
		"--dir", dir,
		"--save", "",
		"--appendonly", "no",
		"--daemonize", "no",
	)
	return append(args, cfg.Settings...)
}

// writeFile writes the configuration file, but leaves one alone that is there from an earlier
// start.
func (cfg RedisConfig) writeFile(dir string, user *syscall.Credential) error {
	path := filepath.Join(dir, redisConfigFile)
	if _, err := os.Stat(path); cfg.ConfigFile == "" || err == nil {
		return nil
	}
	if err := os.WriteFile(path, []byte(cfg.ConfigFile), 0o600); err != nil {
		return err
	}
	if user == nil {
		return nil
	}
	return os.Chown(path, int(user.Uid), int(user.Gid))
}

// PingRedis asks once, in Redis's inline protocol: a client library would retry and log.
func PingRedis(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	answer, err := AskRedis(ctx, addr, "PING")
	if err == nil && answer != "+PONG" {
		err = fmt.Errorf("PING: %s", answer)
	}
	return err
}

// AskRedis sends one inline command and returns the first line of the answer.
func AskRedis(ctx context.Context, addr, command string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}
