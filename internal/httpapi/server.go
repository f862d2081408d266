package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/semaphore"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/pages"
)

// basePath is where the API begins; the paths of the description follow it.
const basePath = "/v1"

// Config is what the API is made of.
type Config struct {
	Service *checkout.Service
	APIKeys *access.Ring
	Store   idempotency.Store
	Logger  *slog.Logger
	Replica string // shown in the header X-Served-By; empty: none

	// TrustedProxies are the peers whose X-Forwarded-For is believed. With none, the client is the
	// peer of the connection.
	TrustedProxies []netip.Prefix
	RateLimit      int                // requests per second, account and replica
	AuthCacheTTL   time.Duration      // how long a revoked API key may still work
	Admission      *admission.Limiter // nil: everything is admitted
	Lookups        int64              // of keys at a time, of requests without a slot; zero: any number
	Budget         *admission.Budget  // of answers that are kept; nil: without bound

	Lease           time.Duration // of a key without a heartbeat
	PaymentTTL      time.Duration // how long the answer to a movement of money is kept
	OrderTTL        time.Duration // how long all other answers are kept
	TombstoneTTL    time.Duration // how long it is remembered that a key moved money
	PaymentDeadline time.Duration // of the handlers that move money
	OrderDeadline   time.Duration // of all others

	// WebhookSecret is what the payment provider signs its events with, as Standard Webhooks writes
	// it: whsec_ and base64. Without one, all events are refused.
	WebhookSecret string
	// WebhookSecretPrevious is accepted, too; empty: none.
	WebhookSecretPrevious string

	// Stripe reads the events of Stripe; nil: they are refused.
	Stripe Events

	// DemoKey is the API key of the requests that the viewer at /docs sends; empty: it sends none.
	DemoKey string

	// TraceParent names the request that a context belongs to. Replays show it as Check.Original.
	// It may be nil.
	TraceParent func(context.Context) string
	// Observe is called with every idempotency check, and ObserveRequest with every request once it
	// is answered. The route is its pattern, or empty. Either may be nil. They must be safe for
	// concurrent use and fast.
	Observe        func(r *http.Request, route string, check idempotency.Check)
	ObserveRequest func(r *http.Request, route string, status int, took time.Duration)
	// ObserveProviderEvent is called with what each provider event led to, like the others. It may
	// be nil.
	ObserveProviderEvent func(checkout.ProviderEvent, checkout.Verdict)
}

// Server answers the API's requests. It is safe for concurrent use.
type Server struct {
	cfg         Config
	log         *slog.Logger
	routes      chi.Router
	policies    map[string]*idempotency.Policy // by method and route pattern
	idempotency *idempotency.Middleware
	lookups     *semaphore.Weighted // Config.Lookups of them
	strangers   *httprate.RateLimiter
	signatures  []*standardwebhooks.Webhook // with none, no event can be verified
}

var _ http.Handler = (*Server)(nil)

// New makes a server. It fails when the configuration, or the API description that is compiled in,
// is unusable.
func New(cfg Config) (*Server, error) {
	valid, err := loadValidator()
	if err != nil {
		return nil, fmt.Errorf("load the API description: %w", err)
	}
	return newServer(cfg, valid)
}

func newServer(cfg Config, valid *validator) (*Server, error) {
	if cfg.RateLimit < 1 || cfg.OrderDeadline <= 0 {
		return nil, errors.New("httpapi: the rate limit and the order deadline must be positive")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Budget != nil {
		cfg.Store = countedStore{cfg.Store, cfg.Budget}
	}
	signatures, err := newSignatures(cfg.WebhookSecret, cfg.WebhookSecretPrevious)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Logger, signatures: signatures, strangers: newStrangers(), policies: keyedRoutes(cfg),
		lookups: semaphore.NewWeighted(cmp.Or(cfg.Lookups, math.MaxInt64))}
	s.idempotency = s.idempotent()
	s.routes = s.router(valid)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Wait ends the repetition of steps at the idempotency store, and returns when the last of them has
// ended, after a few seconds at most. Call it after [http.Server.Shutdown] and before closing the
// store.
func (s *Server) Wait() { s.idempotency.Wait() }

// Waiting returns how many requests wait for another one with their key.
func (s *Server) Waiting() int { return s.idempotency.Waiting() }

func (s *Server) router(valid *validator) chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.noteArrival)
	r.Use(s.clientIP()...)
	r.Use(s.accessLog, s.recover, s.limitBody)
	r.Use(middleware.GetHead)
	notFound := func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errRouteNotFound) }
	pages.Mount(r, pages.Options{DemoKey: s.cfg.DemoKey, NotFound: notFound})
	r.NotFound(notFound)
	r.MethodNotAllowed(s.methodNotAllowed)
	checked := r.With(s.limitTime,
		s.checkCaller, s.limitRate(), s.readBody, s.limitLoad, s.validate(valid), s.refuseStale, s.limitKept, s.idempotency.Handler)
	api.HandlerWithOptions(s.operations(), api.ChiServerOptions{
		BaseURL: basePath, BaseRouter: checked, ErrorHandlerFunc: s.badParameter})
	return r
}

func (s *Server) operations() api.ServerInterface {
	return api.NewStrictHandlerWithOptions(handlers{s.cfg.Service, s.cfg.Store, s.cfg.TombstoneTTL, s.cfg.Stripe, s.observeProviderEvent}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			s.rejected(w, r, invalidRequest("The request body can't be read as what the API description says.").because(err))
		},
		ResponseErrorHandlerFunc: s.fail,
	})
}

// methodNotAllowed answers with the methods that the path has (RFC 9110, section 15.5.6).
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if s.routes.Match(chi.NewRouteContext(), method, path) {
			allowed = append(allowed, method)
			if method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
	}
	if len(allowed) == 0 { // a method that the router does not know, at a path that it does not know
		s.fail(w, r, errRouteNotFound)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.fail(w, r, errMethodNotAllowed)
}
