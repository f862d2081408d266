package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

// jump sets the database's clock, for all statements from now on, so far ahead of the machine's.
// Columns whose default is now() keep the machine's time.
func (b *bundle) jump(ahead time.Duration) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, `DO $do$ BEGIN
		CREATE SCHEMA IF NOT EXISTS jumped;
		CREATE OR REPLACE FUNCTION jumped.now() RETURNS timestamptz LANGUAGE sql STABLE
			AS $$ SELECT pg_catalog.now() + interval '`+ahead.String()+`' $$;
		EXECUTE format('ALTER DATABASE %I SET search_path = jumped, public, pg_catalog', current_database());
	END $do$`)
	require.NoError(b.t, err)
	b.pool.Reset()
}

// TestJump_MovesTheClock keeps the other tests of this file from showing nothing.
func TestJump_MovesTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, ahead := range []time.Duration{25 * time.Hour, -time.Hour, 0} {
		b.jump(ahead)
		require.WithinDuration(t, time.Now().Add(ahead), value[time.Time](b, "SELECT now()"), time.Minute)
	}
}

// TestClock_ThatJumpsMakesNothingHappenTwice: a database whose clock jumps and comes back has
// neither deleted what it kept, nor let a request act again meanwhile.
func TestClock_ThatJumpsMakesNothingHappenTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted, call := wants(b.customer().ID, "tee-black", 1), b.call("placed", 1)
	call.Claim.TombstoneTTL = 48 * time.Hour
	placed, err := b.PlaceOrder(b.ctx, call, wanted)
	require.NoError(t, err)
	refused := wants(b.customer().ID, "new-sku", 1)
	older, _ := b.attempts("refused", 1)
	_, err = b.PlaceOrder(b.ctx, older, refused)
	requireCode(t, "unknown_product", err)
	_, err = b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "new-sku", Name: "New", Price: usd(1), Stock: 9})
	require.NoError(t, err)

	for _, ahead := range []time.Duration{1000 * time.Hour, -time.Hour} {
		b.jump(ahead)
		b.purge(10, 0)
		call.Claim.ArrivedAt = time.Now()
		if again, err := b.PlaceOrder(b.ctx, call, wanted); err == nil {
			require.True(t, again.Replayed)
		}
		_, err = b.PlaceOrder(b.ctx, older, refused)
		require.Error(t, err)
		_, err = b.PlaceOrder(b.ctx, b.call("fresh", 1), wanted)
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
	}
	b.jump(0)
	again, err := b.PlaceOrder(b.ctx, call, wanted)
	require.NoError(t, err)
	require.Equal(t, contentOf(placed).Body, contentOf(again).Body)
	_, err = b.PlaceOrder(b.ctx, older, refused)
	requireCode(t, "newer_attempt_refused", err)
	require.Equal(t, 1, b.count("orders"))
}

// TestClock_ThatIsOffDecidesNothingAboutAPayment: it would be sent after the provider has forgotten
// its key, or be declined while its charge is under way.
func TestClock_ThatIsOffDecidesNothingAboutAPayment(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{24 * time.Hour, -2 * time.Hour} {
		b, p := setup(t), &provider{}
		c := b.lostPayment(p, "k")
		p.moved = nil // it is under way
		b.begunAgo("payments", 24*time.Hour+time.Minute)
		if off > 0 {
			b.begunAgo("payments", time.Minute)
		}
		sent := p.calls
		b.jump(off)
		b.reconcile(b.impatient(p), 0)
		_, err := b.payAgain(p, c)
		requireCode(t, "payment_outcome_unknown", err)
		require.Equal(t, sent, p.calls)
		require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)
	}
}
