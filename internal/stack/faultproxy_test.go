package stack

import (
	"bufio"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	remote "github.com/Shopify/toxiproxy/v2/client"
	"github.com/stretchr/testify/require"
)

var hop = edge{from: Nginx, to: API1}

// silence is how long we listen to be sure that nothing comes: loopback needs some 50 µs.
const silence = 200 * time.Millisecond

// hopBundle is one hop in front of an echo server, and the control port of its proxy.
type hopBundle struct {
	address string // of the proxy
	faults  *remote.Client
}

func setupHop(t testing.TB) hopBundle {
	t.Helper()
	server := newToxiproxy(io.Discard)
	proxy := toxiproxy.NewProxy(server, hop.name(), "127.0.0.1:0", echoServer(t))
	require.NoError(t, server.Collection.Add(proxy, true))
	t.Cleanup(func() { require.NoError(t, server.Collection.Clear()) })
	control := httptest.NewServer(server.Routes())
	t.Cleanup(control.Close)
	return hopBundle{address: proxy.Listen, faults: remote.NewClient(control.Listener.Addr().String())}
}

// proxy is the hop as it is now.
func (b hopBundle) proxy(t *testing.T) *remote.Proxy {
	t.Helper()
	proxy, err := b.faults.Proxy(hop.name())
	require.NoError(t, err)
	return proxy
}

// echoServer sends everything back, until the test ends.
func echoServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var handlers sync.WaitGroup
	handlers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handlers.Go(func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() { require.NoError(t, l.Close()); handlers.Wait() })
	return l.Addr().String()
}

// client is a connection that sends lines and gets them back.
type client struct {
	net.Conn
	reader *bufio.Reader
}

func dial(t testing.TB, address string) client {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return client{conn, bufio.NewReader(conn)}
}

// echo sends a line and returns what comes back within d.
func (c client) echo(line string, d time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(d)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, line); err != nil {
		return "", err
	}
	return c.reader.ReadString('\n')
}

func TestPartition_SwallowsAndHealingResets(t *testing.T) {
	t.Parallel()
	b := setupHop(t)
	old := dial(t, b.address)
	answer, err := old.echo("hello\n", testTimeout)
	require.NoError(t, err)
	require.Equal(t, "hello\n", answer)

	require.NoError(t, inflict(b.proxy(t), "partition", ""))
	require.NoError(t, inflict(b.proxy(t), "partition", ""), "cutting twice is fine")
	active, err := inForce(b.faults)
	require.NoError(t, err)
	require.Equal(t, []string{"nginx → api-1: partition"}, active)

	_, err = old.echo("lost\n", silence)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "an old connection is silent, not closed")
	fresh := dial(t, b.address)
	_, err = fresh.echo("lost\n", silence)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a new one is not refused")

	require.NoError(t, inflict(b.proxy(t), "heal", ""))
	require.NoError(t, inflict(b.proxy(t), "heal", ""), "healing twice is fine")
	for _, c := range []client{old, fresh} {
		require.NoError(t, c.SetDeadline(time.Now().Add(testTimeout)))
		// Nothing is sent: Toxiproxy leaks a goroutine for a connection that sends while it is
		// being closed.
		_, err = c.reader.ReadString('\n')
		require.Error(t, err, "a connection that lost bytes must not go on")
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	answer, err = dial(t, b.address).echo("back\n", testTimeout)
	require.NoError(t, err)
	require.Equal(t, "back\n", answer)
}

func TestSlow_DelaysAnswersUntilHealed(t *testing.T) {
	t.Parallel()
	b := setupHop(t)
	c := dial(t, b.address)
	require.Error(t, inflict(b.proxy(t), "slow", "0ms"))
	require.Error(t, inflict(b.proxy(t), "cut", "0"))
	require.NoError(t, inflict(b.proxy(t), "slow", "1h"))
	require.NoError(t, inflict(b.proxy(t), "slow", silence.String()), "in place of the hour")
	begun := time.Now()
	_, err := c.echo("hello\n", testTimeout)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), silence)

	require.NoError(t, b.faults.ResetState())
	active, err := inForce(b.faults)
	require.NoError(t, err)
	require.Empty(t, active)
}

// BenchmarkProxyHop compares a round trip with and without the proxy.
func BenchmarkProxyHop(b *testing.B) {
	bundle := setupHop(b)
	for name, address := range map[string]string{"proxied": bundle.address, "direct": echoServer(b)} {
		b.Run(name, func(b *testing.B) {
			c := dial(b, address)
			for b.Loop() {
				if _, err := c.echo("ping\n", testTimeout); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
