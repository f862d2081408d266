package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
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

	target  string
	running sync.WaitGroup

	mu          sync.Mutex
	links       map[*link]bool
	roundTrips  int
	plans       []plan
	partitioned bool
}

// plan is a fault for the next request that contains match.
type plan struct {
	match []byte
	fault Fault
}

// NewProxy starts a proxy to the server at target (host:port). It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err, "testenv: start a proxy")
	p := &Proxy{Addr: listener.Addr().String(), target: target, links: map[*link]bool{}}
	ctx, end := context.WithCancel(context.Background())
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(ctx, client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		p.running.Wait()
	})
	return p
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
	p.plans = append(p.plans, plan{match: []byte(match), fault: fault})
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
	for l := range p.links {
		l.end()
	}
}

// serve carries one connection until either side or the context ends it.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{Timeout: localserver.ProbeTimeout}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	ctx, end := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	l := &link{proxy: p, ctx: ctx, end: end}
	p.mu.Lock()
	p.links[l] = true
	p.mu.Unlock()
	var pumps sync.WaitGroup
	carry := func(from, to net.Conn, pass func([]byte) bool) {
		_, _ = io.Copy(gate{to, pass}, from)
		end()
	}
	pumps.Go(func() { carry(client, server, l.request) })
	pumps.Go(func() { carry(server, client, l.reply) })
	pumps.Wait()
	_ = server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// link is one connection through the proxy.
type link struct {
	proxy *Proxy
	ctx   context.Context // of the connection
	end   func()

	// Guarded by proxy.mu:
	asked bool  // the client sent something that was not answered yet
	fault Fault // of the answer to come
}

// gate lets data pass to one side, or swallows it.
type gate struct {
	to   io.Writer
	pass func([]byte) bool
}

func (g gate) Write(data []byte) (int, error) {
	if g.pass(data) {
		return g.to.Write(data)
	}
	return len(data), nil
}

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
		if bytes.Contains(data, planned.match) {
			l.fault = planned.fault
			p.plans = append(p.plans[:i:i], p.plans[i+1:]...)
			break
		}
	}
	return true
}

// reply decides what becomes of what the server sends.
func (l *link) reply([]byte) (pass bool) {
	fault, pass := l.takeFault()
	if fault.Cut {
		l.end()
	}
	if fault.Delay > 0 {
		_ = wait.Pause(l.ctx, fault.Delay)
	}
	return pass && !fault.Lose && !fault.Cut
}

// takeFault counts the round trip that an answer ends.
func (l *link) takeFault() (Fault, bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partitioned {
		return Fault{}, false
	}
	if l.asked {
		l.asked = false
		p.roundTrips++
	}
	fault := l.fault
	if !fault.Lose { // which lasts
		l.fault = Fault{}
	}
	return fault, true
}
