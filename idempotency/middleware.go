package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	// storeTimeout bounds each step at the store, its repetition included, for
	// stores that have no timeouts of their own: a client waits for it.
	storeTimeout = 2 * time.Second
	// maxCleanups bounds the best-effort steps that outlive their requests. More
	// of them at once mean that the store is down, and leases end by themselves.
	maxCleanups = 64
)

// Middleware makes handlers idempotent by key. It is made by [New], and safe
// for concurrent use.
type Middleware struct {
	store       Store
	policyFor   func(*http.Request) *Policy
	scope       func(*http.Request) string
	writeError  func(http.ResponseWriter, *http.Request, *Error)
	observe     func(*http.Request, Check)
	traceParent func(context.Context) string
	headers     headerFilter
	maxBody     int64
	maxResponse int
	log         *slog.Logger

	cleanups     sync.WaitGroup
	cleanupSlots chan struct{}
	waitSlots    chan struct{}
}

// New makes a middleware that keeps its records in store and asks policyFor
// what a request's route wants. A nil policy lets the request pass through.
func New(store Store, policyFor func(*http.Request) *Policy, opts ...Option) *Middleware {
	m := &Middleware{
		store: store, policyFor: policyFor,
		scope:       func(*http.Request) string { return "" },
		writeError:  WriteProblem,
		observe:     func(*http.Request, Check) {},
		traceParent: func(context.Context) string { return "" },
		headers:     newHeaderFilter(defaultHeaders),
		maxBody:     DefaultMaxBody, maxResponse: DefaultMaxResponse,
		log:          slog.Default(),
		cleanupSlots: make(chan struct{}, maxCleanups),
		waitSlots:    make(chan struct{}, DefaultMaxWaiters),
	}
	for _, opt := range opts {
		opt(m)
	}
	return m
}

// Wait returns when the best-effort steps that outlived their requests have
// ended, which takes seconds at most. Call it after [http.Server.Shutdown] and
// before closing the store.
func (m *Middleware) Wait() { m.cleanups.Wait() }

// Waiting is how many requests are waiting right now for another attempt with
// their key.
func (m *Middleware) Waiting() int { return len(m.waitSlots) }

// Handler wraps next. A request that has a claim already, from a middleware
// further out, passes through.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		policy := m.policyFor(r)
		if policy == nil || ClaimFrom(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		m.serve(w, r, policy.withDefaults(), next)
	})
}

// serve takes a request up to the point where its key is acquired, or answered
// without the handler.
func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, policy Policy, next http.Handler) {
	c := &call{Middleware: m, w: w, r: r, policy: policy, began: time.Now()}
	key, present, problem := ParseKey(r.Header)
	switch {
	case problem != nil:
		c.reject(ResultMalformed, problem)
		return
	case !present && policy.Required:
		c.reject(ResultMissing, keyMissing())
		return
	case !present:
		next.ServeHTTP(w, r)
		return
	}
	c.check.Key, c.check.Scope = key, m.scope(r)
	body, err := readBody(w, r, m.maxBody)
	if err != nil {
		c.reject(ResultRejected, bodyError(err))
		return
	}
	c.prepare(body)
	c.acquire(next)
}

// readBody reads the body and puts an unread copy in its place.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// cleanup takes a step that nobody waits for and that may fail: the lease's end
// does the same. It is bounded in time and in number.
func (m *Middleware) cleanup(ctx context.Context, step func(context.Context) error) {
	select {
	case m.cleanupSlots <- struct{}{}:
	default:
		return
	}
	m.cleanups.Go(func() {
		defer func() { <-m.cleanupSlots }()
		if err := detached(ctx, step); err != nil && !errors.Is(err, ErrLost) {
			m.log.DebugContext(ctx, "idempotency: best-effort cleanup failed", "error", err)
		}
	})
}

// detached takes one step at the store, whatever became of the client.
func detached(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return step(ctx)
}
