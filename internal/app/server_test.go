package app

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// TestTimeouts_EachFitsIntoTheNext goes through all routes: the provider, the handler, the wait
// before it, the answer on the wire, and the drain.
func TestTimeouts_EachFitsIntoTheNext(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig(nil)
	require.NoError(t, err)
	a := &App{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	require.Less(t, cfg.PSPTimeout+checkout.SettleGrace, cfg.PaymentDeadline)
	require.Less(t, cfg.PSPTimeout+checkout.SettleGrace, cfg.ReconcileGrace)
	budgets := httpapi.Budgets(a.apiConfig(nil))
	require.Len(t, budgets, 9)
	for route, budget := range budgets {
		require.Less(t, bodyTimeout+budget, a.newAPIServer(nil).WriteTimeout, route)
		require.Less(t, budget, cfg.ShutdownDeadline, route)
	}
}

// TestServer_LeavesOptionsToTheHandler because net/http's own answer has no request ID.
func TestServer_LeavesOptionsToTheHandler(t *testing.T) {
	t.Parallel()
	a := &App{log: slog.New(slog.DiscardHandler)}
	server := httptest.NewUnstartedServer(nil)
	server.Config = a.newAPIServer(http.NotFoundHandler())
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}

// TestServer_SpeaksHTTP1Alone because a stream that is reset leaves its connection open: the look
// at the connection would not see that a client has left.
func TestServer_SpeaksHTTP1Alone(t *testing.T) {
	t.Parallel()
	a := &App{log: slog.New(slog.DiscardHandler)}
	server := httptest.NewUnstartedServer(nil)
	server.Config = a.newAPIServer(http.NotFoundHandler())
	server.Start()
	t.Cleanup(server.Close)
	for _, ask := range []string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, ask)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, "HTTP/1.1 404 Not Found", answer.Proto+" "+answer.Status)
		require.NoError(t, conn.Close())
	}
}

func TestServer_BreaksOffASlowBody(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	server := httptest.NewServer(boundBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	}), 50*time.Millisecond))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	require.ErrorContains(t, <-failed, "timeout")
}

// TestServer_AnswersBeforeABodyThatWaitsToBeAskedFor: the client of a bad API key need not send it.
func TestServer_AnswersBeforeABodyThatWaitsToBeAskedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(boundBody(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}), time.Minute))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second))) // half of the body's time
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.True(t, answer.Close, "what comes is not a request")
}

func TestServer_DoesNotBreakOffASlowHandler(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	server := httptest.NewServer(boundBody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusInternalServerError)
		case <-time.After(4 * limit):
		}
	}), limit))
	t.Cleanup(server.Close)
	got, err := request(context.Background(), http.MethodPost, server.URL, "", "a body")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.status)
}
