package app

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// peer is a connection from an address. It notes when it is closed.
type peer struct {
	net.Conn
	addr   string
	closed bool
}

func (p *peer) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.addr)) }

func (p *peer) Close() error {
	p.closed = true
	return nil
}

// open opens n connections and returns how many were let in.
func open(c *connections, n int, addr string) (in int, last *peer) {
	for range n {
		last = &peer{addr: addr}
		if c.observe(last, http.StateNew); !last.closed {
			in++
			continue
		}
		c.observe(last, http.StateClosed) // as net/http does when the first read fails
	}
	return in, last
}

func TestConnections_AreBoundedForEachAddress(t *testing.T) {
	t.Parallel()
	c := newConnections([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	in, _ := open(c, maxConnectionsEach, "192.0.2.1:1")
	require.Equal(t, maxConnectionsEach, in)
	in, _ = open(c, 2, "192.0.2.1:1")
	require.Zero(t, in)
	in, last := open(c, 1, "192.0.2.2:1")
	require.Equal(t, 1, in, "another address")
	in, _ = open(c, 2*maxConnectionsEach, "10.1.2.3:1")
	require.Equal(t, 2*maxConnectionsEach, in, "a trusted proxy")
	in, _ = open(c, maxConnectionsEach+1, "[2001:db8::1]:1")
	require.Equal(t, maxConnectionsEach, in)
	in, _ = open(c, 1, "[2001:db8::2]:1")
	require.Zero(t, in, "the same network")

	in, _ = open(c, maxConnections, "10.1.2.3:1")
	require.Len(t, c.open, maxConnections)
	require.Less(t, in, maxConnections, "all together")
	c.observe(last, http.StateClosed)
	in, _ = open(c, 2, "192.0.2.3:1")
	require.Equal(t, 1, in, "there is room for one again")
}

func TestConnections_OfAServerAreCounted(t *testing.T) {
	t.Parallel()
	c := newConnections(nil)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = c.observe
	server.Start()
	t.Cleanup(server.Close)
	var all []net.Conn
	for range maxConnectionsEach {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		all = append(all, conn)
	}
	_, err := http.Get(server.URL)
	require.Error(t, err)
	for _, conn := range all {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool {
		got, err := http.Get(server.URL)
		return err == nil && got.Body.Close() == nil
	}, patience, pause)
	http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.open) == 0 && len(c.each) == 0
	}, patience, pause)
}
