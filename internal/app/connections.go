package app

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

const (
	// maxConnections bounds the memory of connections, which a client takes before it is known. It
	// is more than a proxy opens: nginx lets 672 requests through, and keeps as many idle ones for
	// each worker.
	maxConnections = 4096

	// maxConnectionsEach is what one address gets of them, unless it is a trusted proxy. An
	// unfinished header of a thousand short lines takes 0.13 MiB.
	maxConnectionsEach = 96
)

// connections counts those of a server, and closes what is too many. It is safe for concurrent use.
type connections struct {
	trusted []netip.Prefix

	mu   sync.Mutex
	open map[net.Conn]netip.Addr
	each map[netip.Addr]int // none that has none
}

func newConnections(trusted []netip.Prefix) *connections {
	return &connections{trusted: trusted, open: map[net.Conn]netip.Addr{}, each: map[netip.Addr]int{}}
}

// observe is the server's ConnState. A connection that is closed here before it is served has its
// end reported like any other.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !c.add(conn) {
			_ = conn.Close() // as if there were no server: nothing was read
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	}
}

// add reports whether there was room.
func (c *connections) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	peer := peerOf(conn)
	room := len(c.open) < maxConnections && (c.each[peer] < maxConnectionsEach || c.isTrusted(peer))
	c.open[conn] = peer
	c.each[peer]++
	return room
}

func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	peer, ok := c.open[conn]
	if !ok {
		return
	}
	delete(c.open, conn)
	if c.each[peer]--; c.each[peer] == 0 {
		delete(c.each, peer)
	}
}

func (c *connections) isTrusted(peer netip.Addr) bool {
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// peerOf is the address of the other end. Of IPv6 it is the network, of which one client has all
// addresses (RFC 6177, section 2).
func peerOf(conn net.Conn) netip.Addr {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if addr.Is6() && !addr.IsLoopback() {
		network, _ := addr.Prefix(64)
		return network.Addr()
	}
	return addr
}
