package pspsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/localhost"
)

const (
	// readHeaderTimeout drops clients that connect and say nothing. There is no ReadTimeout on
	// purpose: it would also end the wait of a slow answer.
	readHeaderTimeout = 5 * time.Second
	// idleTimeout is longer than a client keeps idle connections, so that the client closes first
	// and never posts into a connection that is closing.
	idleTimeout = 2 * time.Minute
	// drainTimeout lets ordinary requests finish on stop, which take milliseconds. Slow answers are
	// cut: a stop should not take a minute, and to be cut off is what callers use those tokens for.
	drainTimeout = 3 * time.Second
)

// Server is the provider: an http.Handler and its journal. Safe for concurrent use.
type Server struct {
	http.Handler
	ledger   *ledger
	courier  *courier // nil: no webhooks
	troubles *troubles
	log      *slog.Logger

	drain, eventDelay, firstPause time.Duration
}

// New opens the provider whose charges are in the file at journalPath, which is created if absent.
// It fails when the file is damaged other than by a torn last line, or used by another process.
// Close it after use.
func New(journalPath string, log *slog.Logger) (*Server, error) {
	ledger, torn, err := openLedger(journalPath)
	if err != nil {
		return nil, err
	}
	if torn > 0 {
		log.Warn("cut a torn last line off the journal", "bytes", torn)
	}
	s := &Server{ledger: ledger, troubles: newTroubles(), log: log, drain: drainTimeout, eventDelay: eventDelay, firstPause: firstPause}
	s.Handler = s.routes()
	return s, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.answering(func(*http.Request) (int, any, error) {
		return http.StatusOK, map[string]string{"status": "ok"}, nil
	}))
	for path, object := range map[string]string{"/v1/charges": objectCharge, "/v1/refunds": objectRefund} {
		mux.Handle("POST "+path, s.answering(func(r *http.Request) (int, any, error) { return s.create(r, object) }))
		mux.Handle("GET "+path, s.answering(func(r *http.Request) (int, any, error) { return s.list(r, object) }))
	}
	mux.Handle("POST /v1/webhooks/replay", s.answering(s.replayEvents))
	mux.Handle("PUT /v1/trouble", s.answering(s.trouble))
	mux.Handle("DELETE /v1/trouble", s.answering(s.trouble))
	return mux
}

// Close releases the journal. A request that is still running then fails,
// without an answer that promises anything.
func (s *Server) Close() error {
	if s.courier != nil {
		s.courier.close()
	}
	return s.ledger.journal.Close()
}

// Serve answers on listener, which it closes, until ctx ends. Then it lets requests finish for a
// few seconds and cuts those that are still waiting; that is a normal stop and returns nil. A
// handler that is cut while writing the journal is harmless: its answer can't be sent.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: localhost.Guard(s), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		polite, cancel := context.WithTimeout(context.Background(), s.drain)
		defer cancel()
		_ = server.Shutdown(polite)
		stopped <- server.Close() // which ends the context of each request that is left
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}
