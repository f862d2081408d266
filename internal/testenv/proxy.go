package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

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

	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu          sync.Mutex
	links       map[*link]bool
	roundTrips  int
	plans       []plan
	partitioned bool
	closed      bool
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
	if err != nil {
		t.Fatalf("testenv: start a proxy: %v", err)
	}
	p := &Proxy{Addr: listener.Addr().String(), target: target, listener: listener, links: map[*link]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
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
		l.close()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve carries one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	server, err := (&net.Dialer{Timeout: localserver.ProbeTimeout}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server, ended: make(chan struct{})}
	if !p.add(l) {
		l.close()
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(client, server, l.request) })
	pumps.Go(func() { l.pump(server, client, l.reply) })
	pumps.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = true
	}
	return !p.closed
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	closeOnce      sync.Once
	ended          chan struct{} // closed by close

	// Guarded by proxy.mu:
	asked bool  // the client sent something that was not answered yet
	fault Fault // of the answer to come
}

func (l *link) close() {
	l.closeOnce.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// pump copies from one side to the other what pass lets through, until an end or an error, and then
// closes both.
func (l *link) pump(from io.Reader, to io.Writer, pass func([]byte) bool) {
	defer l.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && pass(buffer[:n]) {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
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
		l.close()
	}
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ended:
		}
	}
	return pass && !fault.Lose
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
