package idempotency_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// numbered names requests 1, 2, 3, …
func numbered() idempotency.Option {
	var requests atomic.Int64
	return idempotency.WithTraceParent(func(context.Context) string { return strconv.FormatInt(requests.Add(1), 10) })
}

// originals returns the TraceParents that the observer got.
func (b *bundle) originals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var originals []string
	for _, check := range b.checks {
		originals = append(originals, check.Original)
	}
	return originals
}

func TestCheck_NamesTheOriginalOfAReplay(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil, numbered())
	b.post(t, "key", "{}")
	b.post(t, "key", "{}")
	b.post(t, "key", `{"another":"request"}`)
	b.post(t, "key", "{}")
	require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay, idempotency.ResultMismatch,
		idempotency.ResultReplay}, b.results())
	require.Equal(t, []string{"", "1", "1", "1"}, b.originals())
}

func TestCheck_NamesTheOriginalOfAConflict(t *testing.T) {
	t.Parallel()
	var b *bundle
	b = setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
		require.Equal(t, http.StatusConflict, b.post(t, "key", "{}").Code)
		w.WriteHeader(http.StatusCreated)
	}, numbered())
	b.post(t, "key", "{}")
	require.Equal(t, []idempotency.Result{idempotency.ResultConflict, idempotency.ResultAcquired}, b.results())
	require.Equal(t, []string{"1", ""}, b.originals())
}

func TestCheck_KeepsTheOriginalOfTheAuthority(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, r *http.Request) {
		claim := idempotency.ClaimFrom(r.Context())
		require.Equal(t, "1", claim.TraceParent)
		claim.ReplayedFrom("from the database")
		w.WriteHeader(http.StatusCreated)
	}, numbered())
	first := b.post(t, "key", "{}")
	requireReplay(t, first, first)
	requireReplay(t, first, b.post(t, "key", "{}"))
	require.Equal(t, 1, b.ran(), "the record was put back")
	require.Equal(t, []string{"from the database", "from the database"}, b.originals())
}

func TestCheck_HasNoOriginalWithoutTraceParent(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, nil)
	b.post(t, "key", "{}")
	b.post(t, "key", "{}")
	require.Equal(t, []string{"", ""}, b.originals())
}
