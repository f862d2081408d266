package authority_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// TestServe_KeepsInTheStoreWhatItKeeps, also statuses that are not kept by default.
func TestServe_KeepsInTheStoreWhatItKeeps(t *testing.T) {
	t.Parallel()
	r := serve(t, func(keys *authority.Keys) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys.Serve(w, r, "note", func(context.Context, *authority.Tx) (authority.Outcome, error) {
				return authority.Refused(authority.Answer{Status: http.StatusNotFound, Body: []byte("no such account")}), nil
			})
		}
	})
	r.expect(0, "k", "a", 404, "no such account", false)
	r.expect(1, "k", "a", 404, "no such account", true) // by the authority
	_, err := r.pool.Exec(r.ctx, "TRUNCATE idempotency_keys")
	require.NoError(t, err)
	r.expect(0, "k", "a", 404, "no such account", true)
	r.expect(1, "k", "a", 404, "no such account", true)
}

// TestServe_TakesEachPartOfABatchForAnOperationOfItsOwn: the parts are requests in the same
// process.
func TestServe_TakesEachPartOfABatchForAnOperationOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys    []string // of the two parts
		answers []int
		notes   int
	}{
		"with keys of their own": {[]string{"one", "two"}, []int{201, 201}, 2},
		"without keys":           {[]string{"", ""}, []int{201, 500}, 1},
		"with the batch's key":   {[]string{"batch", "batch"}, []int{201, 500}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, pool := open(t)
			require.NoError(t, authority.Migrate(ctx, pool))
			_, err := pool.Exec(ctx, "CREATE TABLE notes (text text NOT NULL UNIQUE)")
			require.NoError(t, err)
			var log bytes.Buffer
			note := makeNote(authority.New(pool, authority.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
			t.Cleanup(once.Wait)
			var shop http.Handler
			var answers []int
			send := func(ctx context.Context, path, key string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(path))
				if key != "" {
					r.Header.Set(idempotency.HeaderKey, key)
				}
				w := httptest.NewRecorder()
				shop.ServeHTTP(w, r)
				return w
			}
			shop = once.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/batch" {
					note(w, r)
					return
				}
				for i, key := range tt.keys {
					part := send(r.Context(), "/notes/"+string(rune('a'+i)), key)
					answers = append(answers, part.Code)
					if part.Code == http.StatusCreated {
						require.Equal(t, "/notes/"+string(rune('a'+i)), part.Body.String())
					}
				}
			}))
			send(ctx, "/batch", "batch")
			require.Equal(t, tt.answers, answers)
			require.Equal(t, tt.notes == 1, strings.Contains(log.String(), "one claim is for one operation"), log.String())
			var notes int
			require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM notes").Scan(&notes))
			require.Equal(t, tt.notes, notes)
		})
	}
}

// TestClaim_IsForOneOperation of whichever kind. What failed may be tried again.
func TestClaim_IsForOneOperation(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	keys, failed := authority.New(pool), errors.New("not now")
	answer := authority.Done(authority.Answer{Status: 201})
	ends := func(o authority.Outcome, err error) authority.Run {
		return func(context.Context, *authority.Tx) (authority.Outcome, error) { return o, err }
	}
	asked := 0
	provider := authority.Provider{Ask: func(context.Context, authority.Attempt) (authority.Run, error) {
		if asked++; asked == 1 {
			return nil, failed
		}
		return ends(answer, nil), nil
	}}
	begin := ends(authority.Begun("payment-1"), nil)
	jobs := &idempotency.Keys{Store: memstore.New(), Scope: "jobs"}
	t.Cleanup(jobs.Wait)
	_, err := idempotency.Do(ctx, jobs, "once", nil, func(ctx context.Context) (int, error) {
		claim := claimUnder(ctx)
		_, err := keys.Once(ctx, claim, ends(authority.Outcome{}, failed))
		require.ErrorIs(t, err, failed)
		_, err = keys.Once(ctx, claim, ends(answer, nil))
		require.NoError(t, err)
		_, err = keys.Once(ctx, claim, ends(answer, nil))
		require.ErrorIs(t, err, idempotency.ErrSecondOperation)
		require.False(t, authority.IsUnavailable(err), "no retry helps")
		_, _, err = keys.Begin(ctx, claim, begin, nil)
		require.ErrorIs(t, err, idempotency.ErrSecondOperation)
		claim.Key = "another"
		_, err = keys.Once(ctx, claim, ends(answer, nil))
		return 0, err
	})
	require.NoError(t, err)
	_, err = idempotency.Do(ctx, jobs, "operate", nil, func(ctx context.Context) (int, error) {
		claim := claimUnder(ctx)
		_, err := keys.Operate(ctx, claim, begin, provider)
		require.ErrorIs(t, err, authority.ErrUnknown)
		_, err = keys.Operate(ctx, claim, begin, provider)
		require.NoError(t, err)
		_, err = keys.Operate(ctx, claim, begin, provider)
		require.ErrorIs(t, err, idempotency.ErrSecondOperation)
		return 0, nil
	})
	require.NoError(t, err)
}

// claimUnder is the authority's claim of the key that the work of ctx holds.
func claimUnder(ctx context.Context) authority.Claim {
	held := idempotency.ClaimFrom(ctx)
	c := claim(held.Key)
	c.Scope, c.Fingerprint = held.Scope, held.Fingerprint
	return c
}
