package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/stack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; what is waited for takes milliseconds.
const patience = 20 * time.Second

// fakeBoard is a switchboard that only remembers. Safe for concurrent use.
type fakeBoard struct {
	mu       sync.Mutex
	done     []string
	services []stack.ServiceStatus
	faults   []string
}

// tellingBoard tells out what it does.
type tellingBoard struct {
	*fakeBoard
	*stack.Topology
	out io.Writer
}

func (b tellingBoard) Do(_ context.Context, verb string, args ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	command := strings.Join(append([]string{verb}, args...), " ")
	if command == "kill pspsim" {
		return errors.New("it is not running")
	}
	b.done = append(b.done, command)
	_, err := fmt.Fprintln(b.out, command+": done in 0.1 s")
	return err
}

func (b *fakeBoard) Status(context.Context) ([]stack.ServiceStatus, []string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.services, b.faults, nil
}

func (b *fakeBoard) commands() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.done...)
}

// testConsole is a console whose API is a handler, and whose tiers are away.
type testConsole struct {
	*Server
	t     *testing.T
	board *fakeBoard
	http  *httptest.Server
}

func newTestConsole(t *testing.T, api http.HandlerFunc) *testConsole {
	t.Helper()
	offset, release := stack.FreeOffset()
	t.Cleanup(release)
	at := &stack.Topology{Offset: offset}
	server := func(name string, handler http.Handler) *httptest.Server {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at.Addr(name))
		require.NoError(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: patience}}
		t.Cleanup(server.Close)
		return server
	}
	for _, door := range []string{stack.Nginx, stack.API1, stack.API2} {
		server(door, api).Start()
	}
	board := &fakeBoard{}
	ctx, stop := context.WithCancel(context.Background())
	s := New(ctx, at, func(out io.Writer) (Switchboard, error) { return tellingBoard{board, at, out}, nil })
	page := server(stack.Console, s.Handler())
	page.Start()
	t.Cleanup(func() {
		page.Close()
		stop()
		s.background.Wait()
		s.shop.client.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	})
	return &testConsole{Server: s, t: t, board: board, http: page}
}

// now is what the console knows.
func (c *testConsole) now() (now state) {
	c.change(func(is *state) { now = *is })
	return now
}

// send sends a request to the console with these headers, and returns status and body.
func (c *testConsole) send(method, path, host string, header http.Header, form url.Values) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.http.URL+path, strings.NewReader(form.Encode()))
	require.NoError(c.t, err)
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Host, req.Close = host, true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(body)
}

// press submits a form as the page does.
func (c *testConsole) press(path string, form url.Values) (int, string) {
	c.t.Helper()
	return c.send(http.MethodPost, path, "", http.Header{"Origin": {c.http.URL}}, form)
}

// never is an API that must not be called.
func never(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not expected", http.StatusTeapot) }
