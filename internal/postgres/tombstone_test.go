package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

const tombstoneTTL = 90 * day

// topUpOnce tops up a wallet under a key that leaves a tombstone.
func (b *bundle) topUpOnce(key string, amount int64, wanted checkout.NewTopUp) (checkout.Answer, error) {
	b.t.Helper()
	call := b.call(key, amount)
	call.Claim.TombstoneTTL = tombstoneTTL
	wanted.Amount = usd(amount)
	call.Encode = func(topUp any, err *checkout.Error) any {
		answer := encode(topUp, err).(authority.Answer)
		answer.Resource = "/wallet"
		return answer
	}
	return b.TopUp(b.ctx, call, wanted)
}

// TestTombstone_OutlivesTheReply asks before the answer expires, after that, and after the purge.
func TestTombstone_OutlivesTheReply(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wallet := checkout.NewTopUp{CustomerID: b.customer().ID}
	first, err := b.topUpOnce("k", 500, wallet)
	require.NoError(t, err)
	again, err := b.topUpOnce("k", 500, wallet)
	require.NoError(t, err)
	require.Equal(t, contentOf(first).Body, contentOf(again).Body)
	require.InDelta(t, time.Hour, contentOf(again).KeptFor, float64(time.Minute))

	requireExpired := func(known checkout.Key) {
		t.Helper()
		_, err := b.topUpOnce("k", 500, wallet)
		requireCode(t, "idempotency_key_expired", err)
		var expired *checkout.Error
		require.ErrorAs(t, err, &expired)
		require.Equal(t, "/wallet", expired.Resource)
		_, err = b.topUpOnce("k", 700, wallet)
		require.ErrorIs(t, err, checkout.ErrKeyReused)
		require.Equal(t, checkout.KeyExpired, known.State)
		require.Equal(t, authority.Result{Answer: authority.Answer{Status: 201, Resource: "/wallet"}}, contentOf(known.Answer))
		require.Equal(t, "/wallet", known.Path)
		require.Equal(t, "test", known.Operation)
		require.WithinDuration(t, known.CompletedAt.Add(tombstoneTTL), known.ExpiresAt, time.Second)
		require.EqualValues(t, 500, b.balance(wallet.CustomerID))
	}
	b.keepUntil("k", 0)
	notPurged := b.known("k")
	requireExpired(notPurged)
	b.purge(10, 1)
	b.purge(10, 0)
	require.True(t, value[bool](b, "SELECT num_nonnulls(response_headers, response_body, trace_parent) = 0 FROM idempotency_keys WHERE key = 'k'"))
	purged := b.known("k")
	requireExpired(purged)
	require.Equal(t, notPurged, purged)
}

func (b *bundle) known(key string) checkout.Key {
	b.t.Helper()
	known, err := b.Key(b.ctx, b.account, key)
	require.NoError(b.t, err)
	return known
}

// TestTombstone_EndsAfterItsTime gets the same answers before and after the purge.
func TestTombstone_EndsAfterItsTime(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{false, true} {
		b := setup(t)
		wallet := checkout.NewTopUp{CustomerID: b.customer().ID}
		_, err := b.topUpOnce("k", 500, wallet)
		require.NoError(t, err)
		b.aged("UPDATE idempotency_keys SET expires_at = now() - interval '2 seconds', tombstone_until = now() - interval '1 second' WHERE key = 'k'")
		if purge {
			b.purge(10, 1)
			require.Zero(t, b.count("idempotency_keys"))
		}
		_, err = b.Key(b.ctx, b.account, "k")
		require.ErrorIs(t, err, checkout.ErrKeyNotFound)
		answer, err := b.topUpOnce("k", 700, wallet)
		require.NoError(t, err)
		require.False(t, answer.Replayed)
		require.EqualValues(t, 1200, b.balance(wallet.CustomerID))
	}
}

// TestExpiry_MakesNoDifferenceBeforeThePurge is for keys without a tombstone.
func TestExpiry_MakesNoDifferenceBeforeThePurge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	for _, purge := range []bool{false, true} {
		key := newID().String()
		b.use(key, -time.Second)
		if purge {
			b.purge(10, 1)
		}
		_, err := b.Key(b.ctx, b.account, key)
		require.ErrorIs(t, err, checkout.ErrKeyNotFound)
		answer, err := b.PlaceOrder(b.ctx, b.call(key, "another"), wants(customer, "mug-white", 2))
		require.False(t, answer.Replayed)
		require.Len(t, decode[checkout.Order](t, answer, err).Items, 1)
	}
}

// TestTombstone_OfADeclinedPaymentKeepsItDeclined: a final 4xx never turns out to have had an
// effect.
func TestTombstone_OfADeclinedPaymentKeepsItDeclined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	call := b.call("k", wanted)
	call.Claim.TombstoneTTL = tombstoneTTL
	begun, err := b.CardPayments().Begin(b.ctx, call, wanted)
	require.NoError(t, err)
	_, err = b.CardPayments().Settle(b.ctx, begun.Taken, declined)
	require.NoError(t, err)
	b.keepUntil("k", 0)
	b.purge(10, 1)
	_, err = b.CardPayments().Begin(b.ctx, call, wanted)
	requireCode(t, "idempotency_key_expired", err)
	require.Equal(t, 1, b.count("payments"))
}
