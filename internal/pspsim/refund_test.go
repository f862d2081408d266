package pspsim

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefund_NeverExceedsTheCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charged := b.charge("charge-key", "tok_visa")

	status, part := b.refund("key-1", charged.ID, 4000)
	require.Equal(t, 201, status)
	require.Regexp(t, "^re_[a-z2-7]{26}$", part.ID)
	require.Equal(t, "succeeded", part.Status)
	require.Equal(t, params{Object: "refund", Amount: 4000, Currency: "USD", Reference: "refund-1", Charge: charged.ID}, part.params)

	for key, amount := range map[string]int{"key-2": 201, "key-3": math.MaxInt64} {
		status, refused := b.refund(key, charged.ID, amount)
		require.Equal(t, 422, status)
		require.Equal(t, "declined", refused.Status)
		require.Equal(t, "refund_exceeds_charge", refused.DeclineCode)
		status, again := b.refund(key, charged.ID, amount)
		require.Equal(t, 422, status, "the refusal is kept")
		require.Equal(t, refused.ID, again.ID)
	}

	b = b.crash() // what was refunded is known after a restart, too
	status, again := b.refund("key-1", charged.ID, 4000)
	require.Equal(t, 201, status)
	require.Equal(t, part.ID, again.ID)
	status, _ = b.refund("key-4", charged.ID, 201)
	require.Equal(t, 422, status)
	status, _ = b.refund("key-5", charged.ID, 200)
	require.Equal(t, 201, status)
}

func TestRefund_ConcurrentOnesShareTheCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charged := b.charge("charge-key", "tok_visa")
	var refunded atomic.Int64
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			status, a, err := b.post(t.Context(), "/v1/refunds", string(rune('a'+i)), refundOf(charged.ID, 1000, "USD"))
			if err == nil && status == 201 {
				refunded.Add(a.Amount)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 4000, refunded.Load())
}

func TestRefund_ImpossibleIsDeclined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charged := b.charge("charge-1", "tok_visa")
	_, declined := b.charge("charge-2", "tok_declined")
	_, _ = b.charge("charge-3", "tok_error_first") // pending: no charge yet
	_, refund := b.refund("refund-1", charged.ID, 1)
	for _, c := range []struct {
		key, body string
		status    int
		code      string
	}{
		{"key-1", refundOf(charged.ID, 1, "EUR"), 422, "currency_mismatch"},
		{"key-2", refundOf(declined.ID, 1, "USD"), 422, "charge_not_refundable"},
		{"key-3", refundOf("ch_none", 1, "USD"), 404, "unknown_charge"},
		{"key-4", refundOf(refund.ID, 1, "USD"), 404, "unknown_charge"},
		{"key-5", refundOf("", 1, "USD"), 404, "unknown_charge"},
	} {
		status, a := b.mustPost("/v1/refunds", c.key, c.body)
		require.Equal(t, c.status, status, c.key)
		require.Equal(t, c.code, cmp.Or(a.DeclineCode, a.Problem.Code), c.key)
	}
}
