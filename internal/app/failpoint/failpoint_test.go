//go:build failpoints

package failpoint

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Failpoints belong to the process, so these tests are not parallel. They are run by `go test -tags
// failpoints -run Failpoint`.

// victim is the environment variable that has the test binary die at this failpoint.
const victim = "FAILPOINT_VICTIM"

func failpointsServer(t *testing.T) (send func(method, path string) int) {
	t.Helper()
	mux := http.NewServeMux()
	Routes(mux)
	t.Cleanup(func() { clear(process.armed) })
	return func(method, path string) int {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(method, path, http.NoBody))
		return answer.Code
	}
}

func armed() []string {
	process.Lock()
	defer process.Unlock()
	return slices.Sorted(maps.Keys(process.armed))
}

func TestFailpoint_IsArmedAndDisarmed(t *testing.T) {
	send := failpointsServer(t)
	for _, name := range Names {
		require.Equal(t, http.StatusNotFound, send("GET", "/failpoints/"+name))
		require.Equal(t, http.StatusNoContent, send("POST", "/failpoints/"+name+"?skip=1&pause=1ms"))
		require.Equal(t, http.StatusNoContent, send("GET", "/failpoints/"+name))
	}
	require.Equal(t, http.StatusNotFound, send("POST", "/failpoints/nowhere"))
	for _, query := range []string{"skip=x", "skip=-1", "pause=4", "pause=-1s"} {
		require.Equal(t, http.StatusBadRequest, send("POST", "/failpoints/"+afterAcquire+"?"+query), "a typo must not kill")
	}
	require.Len(t, armed(), len(Names))
	require.Equal(t, http.StatusNoContent, send("DELETE", "/failpoints"))
	require.Empty(t, armed())
}

func TestFailpoint_SkipsPausesAndFiresOnce(t *testing.T) {
	send := failpointsServer(t)
	const pause = 100 * time.Millisecond
	send("POST", "/failpoints/"+beforeCommit+"?skip=2&pause="+pause.String())
	reach(afterCommit)
	reach(beforeCommit)
	reach(beforeCommit)
	require.Equal(t, []string{beforeCommit}, armed(), "it lets two pass, and others do not count")
	began := time.Now()
	reach(beforeCommit)
	require.GreaterOrEqual(t, time.Since(began), pause)
	require.Empty(t, armed())
}

func TestFailpoint_Kills(t *testing.T) {
	if name := os.Getenv(victim); name != "" {
		failpointsServer(t)("POST", "/failpoints/"+name)
		reach(name)
		os.Exit(0) // survived
	}
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, self, "-test.run=^TestFailpoint_Kills$")
	child.Env = append(os.Environ(), victim+"="+afterCommit)
	var ended *exec.ExitError
	require.ErrorAs(t, child.Run(), &ended)
	status, ok := ended.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal())
	require.NoError(t, ctx.Err())
}

// arm arms points that do no more than to disarm themselves.
func arm(t *testing.T, names ...string) {
	t.Helper()
	send := failpointsServer(t)
	for _, name := range names {
		require.Equal(t, http.StatusNoContent, send("POST", "/failpoints/"+name+"?pause=1ns"))
	}
}

// observer notes which points were still armed when it was called.
type observer struct {
	checkout.Gateway
	outbox.Stream
	armed []string
}

func (o *observer) Charge(context.Context, checkout.ChargeRequest) checkout.GatewayResult {
	o.armed = armed()
	return checkout.GatewayResult{}
}

func (o *observer) Refund(context.Context, checkout.RefundRequest) checkout.GatewayResult {
	o.armed = armed()
	return checkout.GatewayResult{}
}

func (o *observer) Publish(context.Context, []outbox.Event) error {
	o.armed = armed()
	return nil
}

type observingStore struct {
	idempotency.Store
	*observer
}

func (s observingStore) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	s.armed = armed()
	return s.Store.Acquire(ctx, pending, lease)
}

func (s observingStore) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	s.armed = armed()
	return s.Store.Complete(ctx, done, ttl)
}

func TestFailpoint_AroundTheProvider(t *testing.T) {
	o := &observer{}
	gateway := Gateway(o)
	for name, call := range map[string]func(){
		"charge": func() { gateway.Charge(t.Context(), checkout.ChargeRequest{}) },
		"refund": func() { gateway.Refund(t.Context(), checkout.RefundRequest{}) },
	} {
		arm(t, beforeProvider, afterProvider)
		call()
		require.Equal(t, []string{afterProvider}, o.armed, name)
		require.Empty(t, armed(), name)
	}
}

func TestFailpoint_AroundTheStore(t *testing.T) {
	o := &observer{}
	store := Store(observingStore{memstore.New(), o})
	pending := idempotency.Record{Scope: "s", Key: "k", Status: idempotency.StatusInProgress, Owner: "o"}
	arm(t, afterAcquire, beforeComplete)
	found, err := store.Acquire(t.Context(), pending, time.Minute)
	require.NoError(t, err)
	require.Nil(t, found)
	require.Equal(t, []string{afterAcquire, beforeComplete}, o.armed)
	require.Equal(t, []string{beforeComplete}, armed())

	arm(t, afterAcquire)
	pending.Owner = "another"
	found, err = store.Acquire(t.Context(), pending, time.Minute)
	require.NoError(t, err)
	require.NotNil(t, found)
	require.Equal(t, []string{afterAcquire, beforeComplete}, armed(), "a request without the key does not reach a failpoint")

	done := pending
	done.Owner, done.Status, done.Response.StatusCode = "o", idempotency.StatusCompleted, http.StatusCreated
	require.NoError(t, store.Complete(t.Context(), done, time.Minute))
	require.Equal(t, []string{afterAcquire}, o.armed)
}

func TestFailpoint_AroundACommit(t *testing.T) {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue("commit")
	arm(t, beforeCommit, afterCommit)
	tracer := commitTracer{}
	reading := &pgx.Batch{}
	reading.Queue("select")
	ctx := tracer.TraceBatchStart(t.Context(), nil, pgx.TraceBatchStartData{Batch: reading})
	tracer.TraceBatchEnd(ctx, nil, pgx.TraceBatchEndData{})
	require.Equal(t, []string{afterCommit, beforeCommit}, armed(), "a batch without a commit is passed over")

	ctx = tracer.TraceBatchStart(t.Context(), nil, pgx.TraceBatchStartData{Batch: batch})
	require.Equal(t, []string{afterCommit}, armed())
	tracer.TraceBatchEnd(ctx, nil, pgx.TraceBatchEndData{Err: errors.New("rolled back")})
	require.Equal(t, []string{afterCommit}, armed())
	tracer.TraceBatchEnd(ctx, nil, pgx.TraceBatchEndData{})
	require.Empty(t, armed())
}

func TestFailpoint_AfterAPublication(t *testing.T) {
	o := &observer{}
	arm(t, afterPublish)
	require.NoError(t, Stream(o).Publish(t.Context(), make([]outbox.Event, 1)))
	require.Equal(t, []string{afterPublish}, o.armed)
	require.Empty(t, armed())
}
