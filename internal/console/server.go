package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

const (
	// headerTimeout drops clients that connect and say nothing.
	headerTimeout = 5 * time.Second
	// answerTimeout is longer than nginx waits for a payment: the server has to give up first.
	answerTimeout = 100 * time.Second
)

// Config is what a console works with.
type Config struct {
	// Addr is where the console listens: host:port on loopback. It answers to this name alone.
	Addr string
	// Doors are the base URLs of the API by the names of nginx and of each replica.
	Doors map[string]string
	// Servers returns where the tiers are now.
	Servers func(context.Context) tiers.Servers
	// Do applies a command of the switchboard, such as "kill", "api-1", and returns what it printed
	// when it has taken effect.
	Do func(ctx context.Context, verb string, args ...string) (said string, err error)
	// Status says how each service is, and which faults are in force, such as
	// "api-1 → redis: partition".
	Status func(context.Context) ([]stack.ServiceStatus, []string, error)
	// Lease is the replicas' IDEMPOTENCY_LEASE.
	Lease time.Duration
	Log   *slog.Logger
}

// Server is the console. Safe for concurrent use.
type Server struct {
	cfg   Config
	pages atomic.Int64 // that are open
	mu    sync.Mutex
	state state

	shop    shop // sends once
	patient shop // retries as a client should

	stopping   context.Context // ends when the server stops
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New prepares a console. Close it after use.
func New(cfg Config) *Server {
	wire := &http.Transport{}
	s := &Server{cfg: cfg, state: state{flows: map[int64]map[connection]int{}},
		shop:    shop{&http.Client{Transport: wire, Timeout: answerTimeout}, cfg.Doors},
		patient: shop{&http.Client{Transport: &transport.Transport{Base: wire}}, cfg.Doors}}
	s.stopping, s.stop = context.WithCancel(context.Background())
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
	s.background.Go(func() { s.keepLooking(s.stopping) })
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // a page connects again by itself
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// Close ends what runs in the background.
func (s *Server) Close() {
	s.stop()
	s.background.Wait()
	s.shop.client.CloseIdleConnections()
}
