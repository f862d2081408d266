package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

// basePath is where the API begins; the paths of the description follow it.
const basePath = "/v1"

// Config is what the API is made of.
type Config struct {
	Service *checkout.Service
	Store   idempotency.Store
	Logger  *slog.Logger
	Replica string // shown in the header X-Served-By

	// TrustedProxies are the peers whose X-Forwarded-For is believed. With none,
	// the client is whoever opened the connection.
	TrustedProxies []netip.Prefix
	RateLimit      int           // requests per second, account and replica
	AuthCacheTTL   time.Duration // how long a revoked API key may still work

	Lease           time.Duration // of a key without a heartbeat
	PaymentTTL      time.Duration // how long the answer to a movement of money is kept
	OrderTTL        time.Duration // how long all other answers are kept
	PaymentDeadline time.Duration // of the handlers that move money
	OrderDeadline   time.Duration // of all others

	// Observe is told of every idempotency check, and ObserveRequest of every
	// request once it is answered; both with the pattern of the route, which is
	// empty where there is none. Either may be nil. They are called from many
	// goroutines at once and should be quick.
	Observe        func(r *http.Request, route string, check idempotency.Check)
	ObserveRequest func(r *http.Request, route string, status int, took time.Duration)
}

// Server answers the API's requests. It is safe for concurrent use.
type Server struct {
	cfg         Config
	log         *slog.Logger
	routes      chi.Router
	idempotency *idempotency.Middleware
}

var _ http.Handler = (*Server)(nil)

// New makes a server. It fails when the configuration, or the API description
// that is compiled in, is unusable.
func New(cfg Config) (*Server, error) {
	if cfg.RateLimit < 1 || cfg.OrderDeadline <= 0 {
		return nil, errors.New("httpapi: the rate limit and the order deadline must be positive")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	valid, err := newValidator()
	if err != nil {
		return nil, fmt.Errorf("load the API description: %w", err)
	}
	s := &Server{cfg: cfg, log: cfg.Logger}
	s.idempotency = s.idempotent(keyedRoutes(cfg))
	s.routes = s.router(valid)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Wait returns when what the requests left behind at the idempotency store is
// done, which takes seconds at most. Call it after [http.Server.Shutdown] and
// before closing the store.
func (s *Server) Wait() { s.idempotency.Wait() }

func (s *Server) router(valid *validator) chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.clientIP(), s.accessLog, s.recover, s.limitBody, s.limitTime)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errRouteNotFound) })
	r.MethodNotAllowed(s.methodNotAllowed)
	checked := r.With(
		s.authenticate(newAccounts(s.cfg.Service.Authenticate, s.cfg.AuthCacheTTL)),
		s.limitRate(), s.validate(valid), s.idempotency.Handler)
	api.HandlerWithOptions(s.operations(), api.ChiServerOptions{
		BaseURL: basePath, BaseRouter: checked, ErrorHandlerFunc: s.badParameter})
	return r
}

func (s *Server) operations() api.ServerInterface {
	return api.NewStrictHandlerWithOptions(handlers{s.cfg.Service}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			s.fail(w, r, invalidRequest("The request body can't be read as what the API description says.").because(err))
		},
		ResponseErrorHandlerFunc: s.fail,
	})
}

// methodNotAllowed tells which methods the path has (RFC 9110, section 15.5.6).
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if s.routes.Match(chi.NewRouteContext(), method, path) {
			w.Header().Add("Allow", method)
		}
	}
	s.fail(w, r, errMethodNotAllowed)
}
