// Package app makes a replica of oncepay from its parts: it reads the configuration, connects the
// packages, starts them in order and stops them in order.
//
// A replica is an API server, an operations server beside it (/livez, /readyz, /metrics), and the
// pools they use:
//
//	start:  operations server, PostgreSQL, Redis for a short while, workers, API server, ready
//	stop:   not ready, notice to proxies, API drained, work that outlived its requests, workers, pools, operations
//	        server
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/breaker"
	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/app/failpoint"
	"github.com/oncepay/oncepay/internal/app/metrics"
	"github.com/oncepay/oncepay/internal/app/timeline"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/postgres"
)

// App is one replica. Make it by New, run it by Serve, once.
type App struct {
	cfg     Config
	log     *slog.Logger
	front   func(http.Handler) http.Handler // nil: none
	servers servers
	metrics *metrics.Metrics
	tracing *tracing // nil without a collector
	workers workers
	limits  limits
	api     *httpapi.Server
	ops     net.Listener
	life    life
}

// servers are those that the replica uses.
type servers struct {
	pool         *pgxpool.Pool
	timeline     *timeline.Timeline
	redis        redis.UniversalClient // nil without REDIS_URL
	redisHosts   string                // where it begins to look, for the log
	stream       redis.UniversalClient // of events; nil without REDIS_URL
	records      idempotency.Store
	breaker      *breaker.Breaker // nil without Redis in the records' way
	closeRecords func()
	gateway      gateway
}

// limits are what the replica takes on, of all requests and of one account.
type limits struct {
	admission *admission.Limiter
	budget    *admission.Budget
}

// life is how far the replica has come.
type life struct {
	phase atomic.Int32  // phaseStarting, phaseServing or phaseDraining
	ready chan struct{} // closed when the API serves
	addr  string        // of the API; to be read after ready

	// after is time.After, unless a test ends the notice.
	after func(time.Duration) <-chan time.Time
}

// The phases of a replica's life.
const (
	phaseStarting int32 = iota
	phaseServing
	phaseDraining
)

// New connects the parts and takes the operations port. It needs no other server to be there. The
// App must then be served, which releases everything.
func New(ctx context.Context, cfg Config, log *slog.Logger, options ...Option) (*App, error) {
	if err := cfg.RequireServe(); err != nil {
		return nil, err
	}
	if err := cfg.checkProduction(); err != nil {
		return nil, err
	}
	if cfg.tracesURL() != "" {
		log = slog.New(tracedLog{log.Handler()})
	}
	a := &App{cfg: cfg, log: log.With("pod_id", cfg.Replica), life: life{ready: make(chan struct{}), after: time.After}}
	a.servers.timeline = timeline.New(a.log)
	for _, option := range options {
		option(a)
	}
	if err := a.connect(ctx); err != nil {
		a.closeServers()
		return nil, err
	}
	return a, nil
}

func (a *App) connect(ctx context.Context) (err error) {
	if a.tracing, err = newTracing(ctx, a.cfg, a.log); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	database := postgres.Config{URL: a.cfg.DatabaseURL, MaxConns: a.cfg.DatabaseMaxConns, Tracer: a.tracing.queries(),
		FollowTimeline: a.servers.timeline.Follow, BeginTimeline: a.servers.timeline.Begin}
	if a.servers.pool, err = postgres.Open(ctx, database); err != nil {
		return fmt.Errorf("configuration: DATABASE_URL: %w", err)
	}
	if a.servers.pool, err = failpoint.Pool(ctx, a.servers.pool); err != nil {
		return err
	}
	if err := a.openRecords(); err != nil {
		return err
	}
	a.servers.gateway = a.openGateway()
	a.metrics = metrics.New(a.servers.pool)
	store := postgres.NewStore(a.servers.pool, postgres.Options{UnpaidFor: a.cfg.UnpaidOrderTTL, EventsWritten: a.workers.wakeRelay,
		TraceParent: a.tracing.traceParents()})
	a.limits.admission = admission.New(max(2, int(a.cfg.DatabaseMaxConns)-backgroundConns))
	a.limits.budget = admission.NewBudget(a.cfg.AccountKeys, a.cfg.AccountBytes)
	a.makeWorkers(ctx, store)
	service := checkout.NewService(store, parkingGateway{failpoint.Gateway(a.servers.gateway)})
	a.api, err = httpapi.New(a.apiConfig(service))
	if err != nil {
		return fmt.Errorf("make the API: %w", err)
	}
	a.metrics.Watch(a.parts(service, store))
	if a.ops, err = net.Listen("tcp", a.cfg.OpsAddr); err != nil {
		return fmt.Errorf("listen for operations (OPS_ADDR): %w", err)
	}
	return nil
}

func (a *App) apiConfig(service *checkout.Service) httpapi.Config {
	return httpapi.Config{
		Service: service, APIKeys: a.workers.apiKeys,
		Store:  failpoint.Store(a.servers.records),
		Logger: a.log, Replica: a.cfg.servedBy(),
		TrustedProxies: a.cfg.TrustedProxies, RateLimit: a.cfg.RateLimit, AuthCacheTTL: a.cfg.AuthCacheTTL,
		Admission: a.limits.admission, Lookups: a.recordLookups(), Budget: a.limits.budget,
		Lease: a.cfg.Lease, PaymentTTL: a.cfg.PaymentTTL, OrderTTL: a.cfg.OrderTTL, TombstoneTTL: a.cfg.TombstoneTTL,
		PaymentDeadline: a.cfg.PaymentDeadline, OrderDeadline: a.cfg.OrderDeadline,
		WebhookSecret: a.cfg.WebhookSecret, WebhookSecretPrevious: a.cfg.WebhookSecretPrevious, Stripe: a.cfg.stripeEvents(), DemoKey: a.cfg.demoKey(),
		TraceParent: a.tracing.traceParents(),
		Observe:     a.observeCheck, ObserveRequest: a.observeRequest, ObserveProviderEvent: a.metrics.ObserveProviderEvent,
	}
}

// Ready is closed once the API answers.
func (a *App) Ready() <-chan struct{} { return a.life.ready }

// Addr is the API's host:port. It is known when Ready is closed.
func (a *App) Addr() string { return a.life.addr }

// OpsAddr is the host:port of the operations server.
func (a *App) OpsAddr() string { return a.ops.Addr().String() }

// Serve runs the replica until ctx ends, and then lets requests in flight finish. It returns nil
// after an orderly stop, also when it was stopped before it was ready, and an error when it
// couldn't start, failed, or had to break off requests at the deadline.
func (a *App) Serve(ctx context.Context) error {
	ops := a.newOpsServer()
	opsDone := make(chan error, 1)
	go func() { opsDone <- ops.Serve(a.ops) }()

	err := a.serveAPI(ctx)
	if err == nil {
		a.log.Info("stopped")
	}
	opsCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opsStopTimeout)
	defer cancel()
	if ops.Shutdown(opsCtx) != nil {
		_ = ops.Close() // a scraper that hangs is no reason to fail
	}
	if opsErr := <-opsDone; !errors.Is(opsErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("operations server: %w", opsErr))
	}
	return err
}

func (a *App) serveAPI(ctx context.Context) error {
	if err := a.awaitServers(ctx); err != nil {
		a.closeServers()
		if ctx.Err() != nil {
			return nil // we were asked to stop
		}
		return err
	}
	// Not before: while we wait, a proxy should be refused here and try another replica.
	listener, err := net.Listen("tcp", a.cfg.HTTPAddr)
	if err != nil {
		a.closeServers()
		return fmt.Errorf("listen (HTTP_ADDR): %w", err)
	}
	a.workers.start(ctx)
	server := a.newAPIServer(a.tracing.requests(a.api))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(httpapi.Listen(listener)) }()

	a.life.addr = listener.Addr().String()
	a.life.phase.Store(phaseServing)
	close(a.life.ready)
	a.log.Info("serving", "addr", a.life.addr, "ops_addr", a.OpsAddr(), "environment", a.cfg.Environment)

	select {
	case <-ctx.Done():
		a.giveNotice(failed)
		return a.drain(ctx, server)
	case err := <-failed:
		return errors.Join(fmt.Errorf("serve: %w", err), a.drain(ctx, server))
	}
}

// giveNotice goes on answering, and has each answer close its connection: a proxy would lose a
// request that it sends into a connection which we are closing. It ends early if the server does.
func (a *App) giveNotice(failed <-chan error) {
	a.life.phase.Store(phaseDraining)
	a.log.Info("giving notice", "for", a.cfg.ShutdownNotice.String())
	select {
	case <-a.life.after(a.cfg.ShutdownNotice):
	case err := <-failed:
		a.log.Warn("the server ended while it gave notice", "error", err)
	}
}

// drain lets requests in flight finish and closes what they used, in this order.
func (a *App) drain(ctx context.Context, server *http.Server) error {
	a.life.phase.Store(phaseDraining)
	a.log.Info("draining", "deadline", a.cfg.ShutdownDeadline.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.ShutdownDeadline)
	defer cancel()
	brokenOff := server.Shutdown(ctx)
	if brokenOff != nil {
		_ = server.Close()
		brokenOff = fmt.Errorf("requests were broken off after %s: %w", a.cfg.ShutdownDeadline, brokenOff)
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		a.api.Wait()
		a.workers.stop()
		a.closeServers() // waits for connections that are in use
	}()
	select {
	case <-finished:
		return brokenOff
	case <-ctx.Done():
		return errors.Join(brokenOff, fmt.Errorf("close the pools within %s: %w", a.cfg.ShutdownDeadline, ctx.Err()))
	}
}

// closeServers closes what connect has opened so far.
func (a *App) closeServers() {
	a.servers.close()
	a.tracing.stop()
}

func (s *servers) close() {
	if s.gateway != nil {
		s.gateway.Close()
	}
	if s.closeRecords != nil {
		s.closeRecords()
	}
	for _, client := range []redis.UniversalClient{s.redis, s.stream} {
		if client != nil {
			_ = client.Close() // it says only that it was closed before
		}
	}
	if s.pool != nil {
		s.pool.Close()
	}
}
