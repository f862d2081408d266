package testenv

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// redisDatabases is how many databases a shared server has: one for each test of a package, with
// room.
const redisDatabases = 4096

var (
	redisKind = kind{
		Kind: localserver.Redis, port: "6379/tcp",
		command: []string{
			"redis-server", "--bind", "0.0.0.0", "--save", "", "--appendonly", "no", "--databases", strconv.Itoa(redisDatabases), "--protected-mode", "no",
		},
	}
	sharedRedis  = shared(redisKind, localserver.Config{})
	lastDatabase atomic.Int64
)

// Redis returns the URL of an empty Redis database of its own, such as redis://127.0.0.1:40123/0.
// Where processes serve, it is a server of its own, started in some 30 ms; where containers do, a
// numbered database of a shared one. So a test that configures, fills up or stops the server takes
// RedisServer.
func Redis(t testing.TB) string {
	t.Helper()
	if use(t).name == native.name {
		return RedisServer(t).URL
	}
	server := sharedRedis(t)
	number := lastDatabase.Add(1)
	require.Less(t, number, int64(redisDatabases), "testenv: too many tests asked for a Redis database")
	return strings.TrimSuffix(server.URL, "/0") + "/" + strconv.FormatInt(number, 10)
}

// RedisServer starts a server for this test alone, which the test may stop. Settings are as on the
// command line: "--maxmemory", "1mb".
func RedisServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newServer(t, localserver.Redis, localserver.Config{Settings: settings})
}

// Do sends a command to the server, which must be a Redis, over a connection of its own. It fails
// the test on an error.
func (s *Server) Do(args ...any) {
	s.t.Helper()
	_, err := localserver.AskRedis(context.Background(), s.Addr, args...)
	require.NoErrorf(s.t, err, "testenv: %v at %s", args, s.Addr)
}

func (s *Server) port() string { return s.Addr[strings.LastIndexByte(s.Addr, ':')+1:] }

// awaitLines waits until the server's answer to a command such as INFO has all of these lines, such
// as "role:master".
func (s *Server) awaitLines(command []any, lines ...string) {
	s.t.Helper()
	err := wait.For(context.Background(), localserver.ReadyTimeout, localserver.PollInterval, func(ctx context.Context) error {
		answer, err := localserver.AskRedis(ctx, s.Addr, command...)
		for _, line := range lines {
			if err == nil && !slices.Contains(answer, line) {
				err = fmt.Errorf("no line %q in %q", line, answer)
			}
		}
		return err
	})
	require.NoErrorf(s.t, err, "testenv: %v at %s", command, s.Addr)
}
