package stack

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// replica serves /readyz as api-1 of a stack.
func replica(t *testing.T, s *Stack, code int, answer string) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", s.Ops(API1))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

func TestStatus_SaysWhatAReplicaDoesWithout(t *testing.T) {
	t.Parallel()
	const noRedis = `"redis":{"ok":false,"error":"EOF"}`
	for _, c := range []struct {
		code               int
		answer, state, why string
	}{
		{200, `{"status":"ready","checks":{"postgres":{"ok":true},"redis":{"ok":true}}}`, "ready", ""},
		{200, `{"status":"ready","checks":{"postgres":{"ok":true},` + noRedis + `}}`, "degraded", "without redis (EOF)"},
		{503, `{"status":"unavailable","checks":{"postgres":{"ok":false,"error":"refused"},` + noRedis + `}}`, "not ready", "without postgres (refused), without redis (EOF)"},
		{503, `{"status":"draining"}`, "not ready", "draining"},
	} {
		t.Run(c.state+" "+c.why, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, Options{})
			s.Offset = s.options.PortOffset
			replica(t, s, c.code, c.answer)
			state, why := s.statusOf(testContext(t), API1, condition{state: running}).explain("")
			require.Equal(t, []string{c.state, c.why}, []string{state, why})
		})
	}
}

func TestStatus_SaysHowToEndAFault(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	s.Postgres, s.Promoted, s.Ended = "standby", PostgresStandby, true
	for _, c := range []struct{ name, state, want string }{
		{Redis, stopped, "start redis"}, {Redis, paused, "resume redis"}, {Postgres, stopped, "follow postgres"},
		{PostgresStandby, stopped, "start postgres-standby"}, {Proxy, stopped, "up"},
	} {
		_, why := s.statusOf(context.Background(), c.name, condition{state: c.state}).explain(" --dir x")
		require.Equal(t, "end this: stack "+c.want+" --dir x", why)
	}
}
