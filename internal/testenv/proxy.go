package testenv

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

// Fault is what becomes of the answer to one request. The request itself always reaches the server:
// the faults of a wire that matter are those after which the client doesn't know what happened.
type Fault struct {
	// Delay holds the answer back.
	Delay time.Duration
	// Lose swallows the answer and all that follows on its connection, which stays open.
	Lose bool
	// Cut closes the connection instead of delivering the answer.
	Cut bool
}

// Proxy is a TCP proxy between a client and a server that counts round trips and breaks things on
// demand. Its methods may be called from any goroutine.
type Proxy struct {
	// Addr is the host:port to connect to instead of the server's.
	Addr string

	running sync.WaitGroup

	mu          sync.Mutex
	links       []*link // also those that have ended
	roundTrips  int
	plans       []plan
	partitioned bool
}

// plan is a fault for the next request that contains match.
type plan struct {
	match string
	fault Fault
}

// NewProxy starts a proxy to the server at target (host:port). It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err, "testenv: start a proxy")
	p := &Proxy{Addr: listener.Addr().String()}
	dialer := &net.Dialer{Timeout: localserver.ProbeTimeout}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := dialer.DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.connect(&link{proxy: p, client: client, server: server})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait() // so that there are no further links to cut
		p.Cut()
		p.running.Wait()
	})
	return p
}

// connect carries a connection until either side ends it.
func (p *Proxy) connect(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = append(p.links, l)
	carry := func(from, to net.Conn, pass func([]byte) bool) {
		defer l.end()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 && pass(buffer[:n]) {
				_, writeErr := to.Write(buffer[:n])
				err = cmp.Or(err, writeErr)
			}
			if err != nil {
				return
			}
		}
	}
	p.running.Go(func() { carry(l.client, l.server, l.request) })
	p.running.Go(func() { carry(l.server, l.client, l.reply) })
}

// RoundTrips is how often the client has waited for the server so far, over all connections:
// something sent, then something received. A reply in several pieces is one, and so are several
// requests that were sent together.
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roundTrips
}

// Count returns the round trips that were made while do ran.
func (p *Proxy) Count(do func()) int {
	before := p.RoundTrips()
	do()
	return p.RoundTrips() - before
}

// FailNext breaks the answer to the next request that contains match, on whichever connection it
// comes; empty: the next request. Several calls queue up.
func (p *Proxy) FailNext(match string, fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = append(p.plans, plan{match, fault})
}

// Partition swallows everything, both ways, also on new connections: none is refused, none is
// answered.
func (p *Proxy) Partition() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitioned = true
}

// Heal ends a partition. Connections from before are closed, since bytes are missing from them.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.partitioned = false
	p.mu.Unlock()
	p.Cut()
}

// Cut closes all connections; new ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.end()
	}
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	// Guarded by proxy.mu:
	asked bool  // the client sent something that was not answered yet
	fault Fault // of the answer to come
}

func (l *link) end() { _, _ = l.client.Close(), l.server.Close() }

// request notes what the client sends, before the server has it.
func (l *link) request(data []byte) (pass bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partitioned {
		return false
	}
	l.asked = true
	for i, planned := range p.plans {
		if strings.Contains(string(data), planned.match) {
			l.fault = planned.fault
			p.plans = slices.Delete(p.plans, i, i+1)
			break
		}
	}
	return true
}

// reply decides what becomes of what the server sends, and counts the round trip that it ends.
func (l *link) reply([]byte) (pass bool) {
	p := l.proxy
	p.mu.Lock()
	fault, partitioned := l.fault, p.partitioned
	if l.asked && !partitioned {
		l.asked = false
		p.roundTrips++
	}
	if !fault.Lose { // which lasts
		l.fault = Fault{}
	}
	p.mu.Unlock()
	time.Sleep(fault.Delay)
	if fault.Cut {
		l.end()
	}
	return !partitioned && !fault.Lose && !fault.Cut
}
