package redisstore_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy passes connections on to a server, and loses replies when told to.
type proxy struct {
	listener net.Listener
	backend  string
	running  sync.WaitGroup

	mu    sync.Mutex
	fault fault
	lost  int
	conns []net.Conn
}

type fault int

const (
	none fault = iota
	hold       // the next reply's connection never says anything again
	cut        // the next reply's connection ends
)

func startProxy(t testing.TB, backend string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, backend: backend}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) Addr() string { return p.listener.Addr().String() }
func (p *proxy) HoldReply()   { p.set(hold) }
func (p *proxy) CutReply()    { p.set(cut) }

// Lost counts the replies that a fault swallowed.
func (p *proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// next gives the fault for a reply that has arrived.
func (p *proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fault
	if f != none {
		p.lost++
	}
	p.fault = none
	return f
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.running.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
		p.running.Go(func() { p.replies(client, server); _ = client.Close() })
	}
}

func (p *proxy) replies(client, server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		switch p.next() {
		case cut:
			return
		case hold:
			_, _ = io.Copy(io.Discard, server) // until the client hangs up
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
