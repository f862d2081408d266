package pspsim

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCharge_FollowsTheToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token       string
		status      int
		entryStatus string
		declineCode string
	}{
		{"tok_visa", 201, "succeeded", ""},
		{"tok_mastercard", 201, "succeeded", ""},
		{"tok_declined", 402, "declined", "card_declined"},
		{"tok_insufficient_funds", 402, "declined", "insufficient_funds"},
	} {
		t.Run(c.token, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			status, first := b.charge("key-1", c.token)
			require.Equal(t, c.status, status)
			require.Regexp(t, "^ch_[a-z2-7]{26}$", first.ID)
			require.Equal(t, c.entryStatus, first.Status)
			require.Equal(t, c.declineCode, first.DeclineCode)
			require.Equal(t, "key-1", first.IdempotencyKey)
			require.Equal(t, params{Object: "charge", Amount: 4200, Currency: "USD", Reference: "order-1", Source: c.token}, first.params)
			require.Equal(t, 1, first.Attempts)
			require.WithinDuration(t, time.Now(), first.CreatedAt, time.Minute)

			status, second := b.charge("key-1", c.token)
			require.Equal(t, c.status, status)
			first.Attempts = 2
			require.Equal(t, first, second, "the stored answer")
			require.Equal(t, []entry{second.entry}, b.list("/v1/charges"))
		})
	}
}

func TestCharge_ErrorFirstFailsBeforeCharging(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, failed := b.charge("key-1", "tok_error_first")
	require.Equal(t, 500, status)
	require.Equal(t, "internal_error", failed.Problem.Code)
	require.Empty(t, b.list("/v1/charges"), "nothing was charged")

	b = b.crash()
	require.Empty(t, b.list("/v1/charges"))
	status, charged := b.charge("key-1", "tok_error_first")
	require.Equal(t, 201, status, "the first time is remembered over a restart")
	require.Equal(t, 2, charged.Attempts)
	require.Len(t, b.list("/v1/charges"), 1)
}

func TestCharge_NoAnswerHangsUpOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.post(t.Context(), "/v1/charges", "key-1", chargeOf("tok_charged_no_answer"))
	require.ErrorContains(t, err, "EOF")
	charged := b.list("/v1/charges")
	require.Len(t, charged, 1)
	require.Equal(t, "succeeded", charged[0].Status)

	b = b.crash()
	status, answered := b.charge("key-1", "tok_charged_no_answer")
	require.Equal(t, 201, status)
	require.Equal(t, charged[0].ID, answered.ID)
	require.Len(t, b.list("/v1/charges"), 1)
}

// TestCharge_RevokedTokenIsUnknownAfterTheCharge: the provider checks it before the key, and has
// charged.
func TestCharge_RevokedTokenIsUnknownAfterTheCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.post(t.Context(), "/v1/charges", "key-1", chargeOf("tok_charged_revoked"))
	require.ErrorContains(t, err, "EOF")
	for range 2 { // the second time after a restart
		status, refused := b.charge("key-1", "tok_charged_revoked")
		require.Equal(t, 400, status)
		require.Equal(t, "unknown_token", refused.Problem.Code)
		charged := b.list("/v1/charges?key=key-1")
		require.Len(t, charged, 1)
		require.Equal(t, "succeeded", charged[0].Status)
		b = b.crash()
	}
}

func TestCharge_ReusedKeyIsRefusedAndCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charged := b.charge("key-1", "tok_visa")
	for name, request := range map[string][2]string{
		"other amount":   {"/v1/charges", strings.Replace(chargeOf("tok_visa"), "4200", "4201", 1)},
		"other token":    {"/v1/charges", chargeOf("tok_mastercard")},
		"unknown token":  {"/v1/charges", chargeOf("tok_nonsense")},
		"as refund":      {"/v1/refunds", refundOf(charged.ID, 1, "USD")},
		"unknown charge": {"/v1/refunds", refundOf("ch_none", 1, "USD")},
	} {
		status, a := b.mustPost(request[0], "key-1", request[1])
		require.Equal(t, 409, status, name)
		require.Equal(t, "idempotency_key_reused", a.Problem.Code, name)
	}
	listed := b.list("/v1/charges")
	require.Len(t, listed, 1)
	require.Equal(t, 6, listed[0].Attempts)
	require.Equal(t, charged.params, listed[0].params)
	require.Empty(t, b.list("/v1/refunds"))
}

func TestCharge_ConcurrentArrivalsOfOneKeyChargeOnce(t *testing.T) {
	t.Parallel()
	const arrivals = 64
	b := setup(t)
	answers := make([]answer, arrivals)
	var group sync.WaitGroup
	for i := range arrivals {
		group.Go(func() {
			status, a, err := b.post(t.Context(), "/v1/charges", "key-1", chargeOf("tok_visa"))
			if err == nil && status == http.StatusCreated {
				answers[i] = a
			}
		})
	}
	group.Wait()

	attempts := map[int]bool{}
	for _, a := range answers {
		require.Equal(t, answers[0].ID, a.ID)
		attempts[a.Attempts] = true
	}
	require.Len(t, attempts, arrivals, "each arrival was counted once")
	require.Len(t, b.list("/v1/charges"), 1)
	require.Len(t, b.crash().list("/v1/charges"), 1)
}

// slowBundle calls the handler without a network, so that the fake clock of synctest can pass the
// time.
func slowBundle(t *testing.T) *Server {
	sim, err := New(filepath.Join(t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	return sim
}

func slowRequest(t *testing.T) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/charges", strings.NewReader(chargeOf("tok_slow_60s")))
	r.Header.Set("Idempotency-Key", "key-1")
	return r
}

func TestCharge_SlowTokenChargesAtOnceAndAnswersLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, begin := slowBundle(t), time.Now()
		var group sync.WaitGroup
		ask := func() {
			w := httptest.NewRecorder()
			sim.ServeHTTP(w, slowRequest(t))
			require.Equal(t, http.StatusCreated, w.Code)
			require.Equal(t, 60*time.Second, time.Since(begin))
		}
		group.Go(ask)
		synctest.Wait()
		require.Len(t, sim.ledger.list(func(*entry) bool { return true }), 1, "before the answer")

		time.Sleep(20 * time.Second) // the fake clock's
		group.Go(ask)                // both are answered together
		group.Wait()
		ask() // and a late one at once
	})
}

func TestAnswer_SlowEndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, begin, w := slowBundle(t), time.Now(), httptest.NewRecorder()
		r := slowRequest(t)
		ctx, hangUp := context.WithTimeout(r.Context(), 7*time.Second)
		defer hangUp()
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { sim.ServeHTTP(w, r.WithContext(ctx)) })
		require.Equal(t, 7*time.Second, time.Since(begin))
		require.Empty(t, w.Body.Bytes())
	})
}

func TestTokens_AreThoseOfThePage(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "tok_", "tok_slow_s", "tok_slow_0s", "tok_slow_61s", "tok_slow_100s", "tok_slow_1m", "tok_slow_-1s", "TOK_VISA", "tok_visa "} {
		_, ok := tokens[token]
		require.False(t, ok, token)
	}
	for token, delay := range map[string]time.Duration{"tok_slow_1s": time.Second, "tok_slow_60s": time.Minute, "tok_visa": 0} {
		b, ok := tokens[token]
		require.True(t, ok, token)
		require.Equal(t, delay, b.delay, token)
	}
}
