package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

// nativeRedis starts a process for this test alone, whatever serves the other tests: servers that
// tell each other and their clients where they are can't be behind a container's published ports.
func nativeRedis(t testing.TB, cfg localserver.RedisConfig) *Server {
	t.Helper()
	if _, err := programs.Redis.Find(); err != nil {
		t.Fatalf("testenv: Sentinel, Cluster and TLS run as processes, also with TESTENV=docker; install the package redis-server: %v", err)
	}
	env.use(t)
	sweepOnce.Do(sweepDirs)
	return newServer(t, func(ctx context.Context) (instance, error) {
		i, err := startNativeRedis(ctx, cfg)
		if err == nil {
			reportRedis(ctx, native{}, i)
		}
		return i, err
	})
}

// Do sends a command to the server, which must be a Redis, over a connection of its own. It fails
// the test on an error.
func (s *Server) Do(args ...any) {
	s.t.Helper()
	if _, err := s.ask(context.Background(), args...); err != nil {
		s.t.Fatalf("testenv: %v at %s: %v", args, s.Addr, err)
	}
}

func (s *Server) ask(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ProbeTimeout)
	defer cancel()
	client := redisClient(s.Addr)
	defer func() { _ = client.Close() }()
	return client.Do(ctx, args...).Result()
}

func (s *Server) port() string { return s.Addr[strings.LastIndexByte(s.Addr, ':')+1:] }

// awaitLines waits until the server's answer to a command such as INFO has all of these lines, such
// as "role:master".
func (s *Server) awaitLines(command []any, lines ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	err := wait.Until(ctx, localserver.PollInterval, func(ctx context.Context) error {
		answer, err := s.ask(ctx, command...)
		if err != nil {
			return err
		}
		text := "\n" + strings.ReplaceAll(fmt.Sprint(answer), "\r", "") + "\n"
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("no line %q in %s", line, text)
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("testenv: %v at %s: %v", command, s.Addr, err)
	}
}
