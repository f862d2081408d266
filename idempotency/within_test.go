package idempotency_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

func newShared(policy idempotency.Policy) *idempotency.Middleware {
	return idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithScope(func(r *http.Request) string {
		return "account" + r.Header.Get("X-Account")
	}), idempotency.WithLogger(slog.New(slog.DiscardHandler)))
}

// batch is a handler that answers /batch by requests to itself, in the context of the batch, and
// counts the requests to the other paths. claims are those that they had.
type batch struct {
	handler http.Handler
	parts   []*http.Request
	answers []*httptest.ResponseRecorder
	claims  []*idempotency.Claim
}

func newBatch(policy idempotency.Policy, parts ...*http.Request) *batch {
	b := &batch{parts: parts}
	b.handler = newShared(policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/batch" {
			b.claims = append(b.claims, idempotency.ClaimFrom(r.Context()))
			w.WriteHeader(http.StatusCreated)
			return
		}
		for _, part := range b.parts {
			answer := httptest.NewRecorder()
			b.handler.ServeHTTP(answer, part.WithContext(r.Context()))
			b.answers = append(b.answers, answer)
		}
	}))
	return b
}

func (b *batch) send(t *testing.T) {
	t.Helper()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, part("/batch", "batch", ""))
	require.Equal(t, http.StatusOK, w.Code)
}

func part(path, key, account string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"n":1}`))
	if key != "" {
		r.Header.Set(idempotency.HeaderKey, key)
	}
	if account != "" {
		r.Header.Set("X-Account", account)
	}
	return r
}

// TestPart_OfARequestHasAClaimOfItsOwnUnderAnotherKey also if another account has the same key.
func TestPart_OfARequestHasAClaimOfItsOwnUnderAnotherKey(t *testing.T) {
	t.Parallel()
	b := newBatch(idempotency.Policy{Required: true},
		part("/items", "item-1", ""), part("/items", "item-1", ""), part("/items", "item-2", ""), part("/items", "batch", "other"))
	b.send(t)
	require.Len(t, b.claims, 3)
	for i, key := range []string{"item-1", "item-2", "batch"} {
		require.Equal(t, key, b.claims[i].Key)
	}
	require.Equal(t, "true", b.answers[1].Header().Get(idempotency.HeaderReplay))
	require.Equal(t, http.StatusCreated, b.answers[3].Code)
	again := httptest.NewRecorder()
	b.handler.ServeHTTP(again, part("/items", "item-1", ""))
	require.Equal(t, "true", again.Header().Get(idempotency.HeaderReplay), "also sent by itself")
}

// TestPart_OfARequestPassesThroughUnderTheSameKeyOrNone: it is a part of the work under that key.
func TestPart_OfARequestPassesThroughUnderTheSameKeyOrNone(t *testing.T) {
	t.Parallel()
	b := newBatch(idempotency.Policy{Required: true}, part("/items", "batch", ""), part("/items", "", ""))
	b.send(t)
	require.Len(t, b.claims, 2)
	for i, claim := range b.claims {
		require.Equal(t, "batch", claim.Key)
		require.Equal(t, http.StatusCreated, b.answers[i].Code)
	}
}

// TestPart_OfARequestWithAKeyFromContent passes through if the content is that of the claim around
// it.
func TestPart_OfARequestWithAKeyFromContent(t *testing.T) {
	t.Parallel()
	runs := 0
	keys := newShared(idempotency.Policy{KeyFrom: &idempotency.Content{Members: []string{"n"}}})
	inner := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
	}))
	w := httptest.NewRecorder()
	keys.Handler(inner).ServeHTTP(w, part("/items", "", ""))
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, 1, runs)
	b := newBatch(idempotency.Policy{KeyFrom: &idempotency.Content{}}, part("/items", "", ""), part("/items", "", ""))
	b.send(t)
	require.Len(t, b.claims, 1, "the second is a replay")
	require.NotEqual(t, "batch", b.claims[0].Key)
}

func TestClaim_IsForOneOperation(t *testing.T) {
	t.Parallel()
	claim, failed := &idempotency.Claim{}, errors.New("no connection")
	done := func() error { return nil }
	require.ErrorIs(t, claim.Operate(func() error { return failed }), failed)
	require.NoError(t, claim.Operate(func() error { // a retry
		require.ErrorIs(t, claim.Operate(done), idempotency.ErrSecondOperation, "beside it")
		return nil
	}))
	require.ErrorIs(t, claim.Operate(done), idempotency.ErrSecondOperation)
}
