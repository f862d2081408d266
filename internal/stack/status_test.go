package stack

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
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

// standing is a driver whose services are in known conditions.
type standing struct {
	driver
	all map[string]ServiceStatus
}

func (s standing) conditions(context.Context) (map[string]ServiceStatus, error) { return s.all, nil }

// printed is the line of a service in `stack status`, with single spaces.
func printed(t *testing.T, s *Stack, name string, c ServiceStatus) string {
	t.Helper()
	var out bytes.Buffer
	s.options.Out, s.driver = &out, standing{all: map[string]ServiceStatus{name: c}}
	require.NoError(t, s.PrintStatus(testContext(t)))
	line := regexp.MustCompile(`(?m)^  ` + name + ` .*`).FindString(out.String())
	return regexp.MustCompile(` +`).ReplaceAllString(line, " ")
}

func TestStatus_SaysWhyAReplicaIsNotReady(t *testing.T) {
	t.Parallel()
	const answer = `{"status":"unavailable","checks":{"postgres":{"ok":false,"error":"refused"}}}`
	for code, want := range map[int]string{200: "ready pid 1 ", 503: "not ready pid 1 GET http://OPS/readyz: status 503: " + answer} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, Options{})
			replica(t, s, code, answer)
			require.Equal(t, " api-1 "+s.Addr(API1)+" "+strings.ReplaceAll(want, "OPS", s.Ops(API1)), printed(t, s, API1, ServiceStatus{State: running, ID: "pid 1"}))
		})
	}
}

// TestStatus_HasItsTableWithoutTheFaultProxy: it runs and does not answer.
func TestStatus_HasItsTableWithoutTheFaultProxy(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	var out bytes.Buffer
	s.options.Out, s.driver = &out, standing{all: map[string]ServiceStatus{Proxy: {State: running}}}
	require.ErrorContains(t, s.PrintStatus(testContext(t)), "read the faults that are in force: ")
	require.Regexp(t, `(?m)^  proxy .* not ready `, out.String())
	require.Regexp(t, `(?m)^  redis .* stopped .* end this: stack start redis`, out.String())
}

func TestStatus_SaysHowToEndAFault(t *testing.T) {
	t.Parallel()
	s := newStack(t, Options{})
	s.Postgres, s.Promoted, s.Ended = "standby", PostgresStandby, true
	for _, c := range []struct{ name, state, want string }{
		{Redis, stopped, "end this: stack start redis"}, {Redis, paused, "end this: stack resume redis"},
		{Postgres, stopped, "standby end this: stack follow postgres"}, {PostgresStandby, stopped, "primary end this: stack start postgres-standby"},
		{Proxy, stopped, "end this: stack up"},
	} {
		require.Equal(t, " "+c.name+" "+s.Addr(c.name)+" "+c.state+" "+c.want+" --dir "+s.Dir, printed(t, s, c.name, ServiceStatus{State: c.state}))
	}
}
