package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority/authoritytest"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestAuthority_PassesTheSuiteOnTheShopsTable has the columns and constraints of the shop.
func TestAuthority_PassesTheSuiteOnTheShopsTable(t *testing.T) {
	t.Parallel()
	authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
		return authoritytest.Bench{Pool: open(t, testenv.Postgres(t)), Table: keysTable, Column: keysScope, New: uuid.NewString}
	})
}

// TestFence_IsThatOfTheKeyAndOfThePayment: a replica of the release before knows only the number
// of the payment, and one of the next release may know only that of the key.
func TestFence_IsThatOfTheKeyAndOfThePayment(t *testing.T) {
	t.Parallel()
	for _, overtaking := range []string{"UPDATE payments SET attempt = attempt + 1", "UPDATE idempotency_keys SET attempt = attempt + 1"} {
		b := setup(t)
		c := b.beginCardPayment("k")
		begun, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
		require.NoError(t, err)
		require.Equal(t, []int32{2, 2}, []int32{begun.Value.Attempt, begun.Call.Claim.Attempt})
		_, err = b.pool.Exec(b.ctx, overtaking)
		require.NoError(t, err)
		_, err = b.CardPayments().Settle(b.ctx, begun.Call, begun.Value, approved)
		require.ErrorIs(t, err, checkout.ErrKeyInProgress, overtaking)
		require.Equal(t, "processing", value[string](b, "SELECT status FROM payments"))
	}
}

// TestTake_CountsTheAttemptOfTheKeyToo, and putting off says for both when the next one is due.
func TestTake_CountsTheAttemptOfTheKeyToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	taken, err := b.CardPayments().Take(b.ctx, 0, 1)
	require.NoError(t, err)
	require.Len(t, taken, 1)
	require.Equal(t, []int32{2, 2}, []int32{taken[0].Value.Attempt, taken[0].Call.Claim.Attempt})
	const putOff = "SELECT p.reconcile_at IS NOT NULL AND p.reconcile_at = k.due_at FROM payments p, idempotency_keys k WHERE k.resource_id = p.id"
	require.NoError(t, b.CardPayments().PutOff(b.ctx, b.account, c.begun, "older", unknownPause))
	require.False(t, value[bool](b, "SELECT coalesce(("+putOff+"), false)"), "an older attempt has no say")
	require.NoError(t, b.CardPayments().PutOff(b.ctx, b.account, taken[0].Value, "", unknownPause))
	require.True(t, value[bool](b, putOff))
	require.Empty(t, value[string](b, "SELECT provider_id FROM payments"), "nor has it for the provider's ID")
	require.NoError(t, b.CardPayments().PutOff(b.ctx, b.account, taken[0].Value, "known", unknownPause))
	require.NoError(t, b.CardPayments().PutOff(b.ctx, b.account, taken[0].Value, "", unknownPause))
	require.Equal(t, "known", value[string](b, "SELECT provider_id FROM payments"))
	taken[0].Call.Encode = encode
	_, err = b.CardPayments().Settle(b.ctx, taken[0].Call, taken[0].Value, approved)
	require.NoError(t, err)
}
