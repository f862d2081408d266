package arrival_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority/arrival"
)

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}

func TestTime_ComesFromTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer, header string
		want         int64 // milliseconds; 0: now
	}{
		{"10.1.2.3:4", "t=1700000000.123", 1_700_000_000_123},
		{"[::ffff:10.1.2.3]:4", "1700000000.123", 1_700_000_000_123},
		{"11.1.2.3:4", "t=1700000000.123", 0},
		{"10.1.2.3:4", "", 0},
		{"10.1.2.3:4", "t=soon", 0},
		{"10.1.2.3:4", "t=1700000000123456", 0}, // in microseconds
		{"10.1.2.3:4", "t=-1", 0},
		{"10.1.2.3:4", "t=NaN", 0},
		{"a socket", "t=1700000000.123", 0},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set(arrival.Header, c.header)
		got := arrival.Time(r, proxies)
		if c.want == 0 {
			require.WithinDuration(t, time.Now(), got, time.Minute, "%+v", c)
			continue
		}
		require.Equal(t, c.want, got.UnixMilli(), "%+v", c)
	}
}

func TestOf_IsTheTimeThatWasNoted(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = "10.1.2.3:4"
	r.Header.Set(arrival.Header, "t=1700000000.5")
	var noted time.Time
	arrival.Note(proxies...)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { noted = arrival.Of(r.Context()) })).
		ServeHTTP(httptest.NewRecorder(), r)
	require.EqualValues(t, 1_700_000_000_500, noted.UnixMilli())
	require.WithinDuration(t, time.Now(), arrival.Of(t.Context()), time.Minute)
}

// TestIsAbandoned_SeesThatTheClientHasLeft also when the bytes of a next request are unread.
func TestIsAbandoned_SeesThatTheClientHasLeft(t *testing.T) {
	t.Parallel()
	next := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%[1]*s", 8<<10, "")
	for _, c := range []struct {
		name, next string
		tls        bool
		leave      func(*net.TCPConn) error
	}{
		{"closes", "", false, (*net.TCPConn).Close},
		{"closes after a pipelined request", next, false, (*net.TCPConn).Close},
		{"closes its half", "", false, (*net.TCPConn).CloseWrite},
		{"closes below TLS", "", true, (*net.TCPConn).Close},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			contexts, ended := make(chan context.Context), make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				contexts <- context.WithoutCancel(r.Context())
				<-ended
			}))
			server.Config.ConnContext = arrival.WithConn
			if c.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			out := conn
			if c.tls {
				out = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the server is this test's
			}
			_, err = fmt.Fprint(out, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"+c.next)
			require.NoError(t, err)
			ctx := <-contexts
			defer close(ended)
			require.False(t, arrival.IsAbandoned(ctx))
			require.NoError(t, c.leave(conn.(*net.TCPConn)))
			require.Eventually(t, func() bool { return arrival.IsAbandoned(ctx) }, time.Minute, time.Millisecond)
		})
	}
	require.False(t, arrival.IsAbandoned(t.Context()))
}
