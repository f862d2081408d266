package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/tiers"
)

const (
	// headerTimeout drops clients that connect and say nothing.
	headerTimeout = 5 * time.Second
	// stopTimeout bounds the wait for requests at the end; none takes long.
	stopTimeout = 2 * time.Second
)

// Config is what a console works with.
type Config struct {
	// Addr is where the console listens: host:port on loopback. It answers to this name alone.
	Addr string
	// Doors are the base URLs of the API by the names of nginx and of each replica.
	Doors map[string]string
	// Servers returns where the tiers are now.
	Servers func(context.Context) tiers.Servers
	// Lease is the replicas' IDEMPOTENCY_LEASE.
	Lease       time.Duration
	Switchboard Switchboard
	Log         *slog.Logger
}

// Server is the console. Safe for concurrent use.
type Server struct {
	cfg     Config
	pages   atomic.Int64 // that are open
	journal *journal
	flows   *counts[connection]
	seen    guarded[seen]
	bought  atomic.Pointer[purchase] // the last one; nil: none
	trickle *trickle
	stage   stage

	shop      shop // sends once
	patient   shop // retries as a client should
	trickling shop // the same, and counts what the trickle met

	stopping   context.Context // ends when the server stops
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New prepares a console. Close it after use.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, journal: &journal{}, flows: newCounts[connection](), trickle: newTrickle()}
	s.stopping, s.stop = context.WithCancel(context.Background())
	names := map[string]string{}
	for name, base := range cfg.Doors {
		if u, err := url.Parse(base); err == nil {
			names[u.Host] = name
		}
	}
	wire := recorder{journal: s.journal, doors: names, base: &http.Transport{MaxIdleConnsPerHost: maxTrickle}}
	s.shop = shop{&http.Client{Transport: wire, Timeout: answerTimeout}, cfg.Doors}
	s.patient = shop{&http.Client{Transport: &transport.Transport{Base: wire}}, cfg.Doors}
	s.trickling = shop{&http.Client{Transport: &transport.Transport{Base: wire, OnRetry: s.trickle.onRetry}}, cfg.Doors}
	return s
}

// Handler answers the page and its buttons.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.Handle("GET /static/", static)
	mux.HandleFunc("GET /events", s.serveEvents)
	mux.HandleFunc("POST /board", s.serveBoard)
	mux.HandleFunc("POST /mend", s.serveMend)
	mux.HandleFunc("POST /shopper", s.serveShopper)
	mux.HandleFunc("POST /trickle", s.serveTrickle)
	mux.HandleFunc("POST /demo", s.serveDemo)
	mux.HandleFunc("POST /key", s.serveKey)
	mux.HandleFunc("POST /v1/traces", s.serveTraces)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	return guard(s.cfg.Addr, mux)
}

// serveKey shows a key in the key view.
func (s *Server) serveKey(w http.ResponseWriter, r *http.Request) {
	key := r.PostFormValue("key")
	s.showKey(r.Context(), key)
	respond(w, "Shown: key "+key, nil)
}

// Serve answers on listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	defer s.Close()
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return s.stopping }, // so that streams of events end with us
		ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn)}
	s.background.Go(func() { s.watch(s.stopping) })
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		s.stop()
		polite, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err := server.Shutdown(polite)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		stopped <- err
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return <-stopped
}

// Close ends what runs in the background.
func (s *Server) Close() {
	s.stop()
	s.background.Wait()
	s.shop.client.CloseIdleConnections()
}
