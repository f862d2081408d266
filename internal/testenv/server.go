package testenv

import (
	"context"
	"testing"
)

// Server is a database server of one test, which may stop and pause it. Its methods fail the test
// on an error and must be called from the test's own goroutine.
type Server struct {
	// URL is what a client connects with; it stays the same over Stop and Start.
	URL string
	// Addr is the server's host:port.
	Addr string

	t        testing.TB
	instance instance
}

// newServer starts a server that ends with the test.
func newServer(t testing.TB, start func(context.Context) (instance, error)) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	i, err := start(ctx)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := i.remove(); err != nil {
			t.Errorf("testenv: remove a server: %v", err)
		}
	})
	return &Server{URL: i.url(), Addr: i.addr(), t: t, instance: i}
}

// Stop ends the server: connections break, new ones are refused. PostgreSQL keeps its data, Redis
// loses everything.
func (s *Server) Stop() { s.t.Helper(); s.do("stop", s.instance.stop) }

// Start starts the server again after Stop, at the same address, and waits until it answers.
func (s *Server) Start() { s.t.Helper(); s.do("start", s.instance.start) }

// Pause freezes the server: connections stay open and nothing is answered. For PostgreSQL only the
// main process is frozen, so that new connections hang while those at hand go on.
func (s *Server) Pause() { s.t.Helper(); s.do("pause", s.instance.pause) }

// Resume lets the server go on after Pause.
func (s *Server) Resume() { s.t.Helper(); s.do("resume", s.instance.resume) }

func (s *Server) do(what string, f func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		s.t.Fatalf("testenv: %s the server at %s: %v", what, s.Addr, err)
	}
}
