//go:build failpoints

package app

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

// A failpoint is an instruction at which a replica can be made to die, as if by kill -9, or to
// pause. Fault campaigns arm one at the operations port:
//
//	POST /failpoints/{name}?skip=N&pause=4s
//
// skip lets so many pass first; without pause the process dies. It disarms itself when it fires;
// GET tells by 204 or 404 whether it is still armed, and DELETE /failpoints disarms all. All but
// the last are points of a request:
const (
	afterAcquire   = "after-acquire"   // the key is held, nothing has begun
	beforeProvider = "before-provider" // a payment has begun and no money moved
	afterProvider  = "after-provider"  // money moved, and no store of ours knows
	beforeCommit   = "before-commit"   // of any transaction
	afterCommit    = "after-commit"    // the effect is there, the answer is not
	beforeComplete = "before-complete" // as above, and Redis does not know either
	afterPublish   = "after-publish"   // events are in the stream, and the relay's cursor is before them
)

var failpointNames = []string{afterAcquire, beforeProvider, afterProvider, beforeCommit, afterCommit, beforeComplete, afterPublish}

// failpoints are those of the process: it dies as a whole.
var failpoints = struct {
	sync.Mutex
	armed map[string]*failpoint
}{armed: map[string]*failpoint{}}

type failpoint struct {
	skip  int
	pause time.Duration
}

// reach fires a failpoint that is armed.
func reach(name string) {
	failpoints.Lock()
	point := failpoints.armed[name]
	if point != nil && point.skip > 0 {
		point.skip--
		point = nil
	}
	if point != nil {
		delete(failpoints.armed, name)
	}
	failpoints.Unlock()
	switch {
	case point == nil:
	case point.pause > 0:
		time.Sleep(point.pause)
	default:
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment, in which nothing more must happen
	}
}

func failRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /failpoints/{name}", func(w http.ResponseWriter, r *http.Request) {
		failpoints.Lock()
		defer failpoints.Unlock()
		if failpoints.armed[r.PathValue("name")] == nil {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /failpoints", func(w http.ResponseWriter, _ *http.Request) {
		failpoints.Lock()
		clear(failpoints.armed)
		failpoints.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /failpoints/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !slices.Contains(failpointNames, name) {
			http.NotFound(w, r)
			return
		}
		point, err := parseFailpoint(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		failpoints.Lock()
		failpoints.armed[name] = point
		failpoints.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
}

// parseFailpoint is strict: a typo must not kill where a pause was meant.
func parseFailpoint(query url.Values) (*failpoint, error) {
	point := &failpoint{}
	var err error
	if text := query.Get("skip"); text != "" {
		if point.skip, err = strconv.Atoi(text); err != nil || point.skip < 0 {
			return nil, fmt.Errorf("skip must be a number, is %q", text)
		}
	}
	if text := query.Get("pause"); text != "" {
		if point.pause, err = time.ParseDuration(text); err != nil || point.pause <= 0 {
			return nil, fmt.Errorf("pause must be a duration such as 4s, is %q", text)
		}
	}
	return point, nil
}

func failStore(store idempotency.Store) idempotency.Store { return failingStore{store} }

type failingStore struct{ idempotency.Store }

func (s failingStore) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	found, err := s.Store.Acquire(ctx, pending, lease)
	if found == nil && err == nil {
		reach(afterAcquire)
	}
	return found, err
}

func (s failingStore) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	reach(beforeComplete)
	return s.Store.Complete(ctx, done, ttl)
}

func (s failingStore) Watch(scope, key string) (<-chan struct{}, func()) {
	return idempotency.Watch(s.Store, scope, key)
}

func (s failingStore) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	return idempotency.Lookup(ctx, s.Store, scope, key)
}

func (s failingStore) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	return idempotency.Repair(ctx, s.Store, pending, lease)
}

func failGateway(gateway checkout.Gateway) checkout.Gateway { return failingGateway{gateway} }

type failingGateway struct{ next checkout.Gateway }

func (g failingGateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	reach(beforeProvider)
	defer reach(afterProvider)
	return g.next.Charge(ctx, r)
}

func (g failingGateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	reach(beforeProvider)
	defer reach(afterProvider)
	return g.next.Refund(ctx, r)
}

func (g failingGateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	return g.next.FindCharge(ctx, r)
}

func (g failingGateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	return g.next.FindRefund(ctx, r)
}

func failStream(stream outbox.Stream) outbox.Stream { return failingStream{stream} }

type failingStream struct{ outbox.Stream }

func (s failingStream) Publish(ctx context.Context, events []outbox.Event) error {
	err := s.Stream.Publish(ctx, events)
	if err == nil {
		reach(afterPublish)
	}
	return err
}

// failPool makes the pool anew with a tracer that sees the commits.
func failPool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.ConnConfig.Tracer = commitTracer{config.ConnConfig.Tracer}
	traced, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make a pool with failpoints: %w", err)
	}
	pool.Close()
	return traced, nil
}

// commitTracer reaches failpoints around the batches that commit.
type commitTracer struct{ pgx.QueryTracer }

type commitKey struct{}

// TraceQueryStart passes on to the tracer that was there before, if any.
func (t commitTracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if t.QueryTracer == nil {
		return ctx
	}
	return t.QueryTracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd passes on, too.
func (t commitTracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if t.QueryTracer != nil {
		t.QueryTracer.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart is called before a batch is sent.
func (commitTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		if query.SQL == "commit" {
			reach(beforeCommit)
			return context.WithValue(ctx, commitKey{}, true)
		}
	}
	return ctx
}

// TraceBatchQuery is called for each answer; a commit's end is the batch's.
func (commitTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is called when all answers are there.
func (commitTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	if commits, _ := ctx.Value(commitKey{}).(bool); commits && data.Err == nil {
		reach(afterCommit)
	}
}
