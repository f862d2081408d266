package postgres

import (
	"testing"
	"time"

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

// TestFence_IsThatOfTheKey: a replica of the release before, which also compares the number in the
// payment's row, counts in the key's row, too.
func TestFence_IsThatOfTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	begun, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
	require.NoError(t, err)
	require.EqualValues(t, 2, begun.Call.Claim.Attempt)
	_, err = b.pool.Exec(b.ctx, "UPDATE idempotency_keys SET attempt = attempt + 1")
	require.NoError(t, err)
	_, err = b.CardPayments().Settle(b.ctx, begun.Taken, approved)
	require.ErrorIs(t, err, checkout.ErrKeyInProgress)
	require.Equal(t, "processing", value[string](b, "SELECT status FROM payments"))
}

// TestTakeDue_PaymentsAndRefunds has one limit for both, and what was put off is taken when its
// time has come.
func TestTakeDue_PaymentsAndRefunds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	paid := b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	refund := b.beginCardRefund("r", checkout.NewRefund{PaymentID: paid.ID})
	due, err := b.TakeDue(b.ctx, time.Hour, 2)
	require.NoError(t, err)
	require.Empty(t, due)
	due, err = b.TakeDue(b.ctx, 0, 1)
	require.NoError(t, err)
	require.Len(t, due.Payments, 1, "the older one")
	require.Empty(t, due.Refunds)
	taken := due.Payments[0]
	require.Equal(t, c.begun.Value.ID, taken.Value.ID)
	require.EqualValues(t, 2, taken.Call.Claim.Attempt)
	require.True(t, taken.Value.UpdatedAt.After(c.begun.Value.UpdatedAt))

	const putOff = "SELECT due_at IS NOT NULL FROM idempotency_keys WHERE resource_id = $1"
	require.NoError(t, b.CardPayments().PutOff(b.ctx, c.begun, "older", unknownPause))
	require.False(t, value[bool](b, putOff, taken.Value.ID), "an older attempt has no say")
	require.Empty(t, value[string](b, "SELECT provider_id FROM payments WHERE status = 'processing'"), "nor has it for the provider's ID")
	require.NoError(t, b.CardPayments().PutOff(b.ctx, taken, "", 0))
	require.True(t, value[bool](b, putOff, taken.Value.ID))
	require.NoError(t, b.CardPayments().PutOff(b.ctx, taken, "known", 0))
	require.NoError(t, b.CardPayments().PutOff(b.ctx, taken, "", 0))
	require.Equal(t, "known", value[string](b, "SELECT provider_id FROM payments WHERE status = 'processing'"))

	due, err = b.TakeDue(b.ctx, 0, 9)
	require.NoError(t, err)
	require.Len(t, due.Payments, 1)
	require.Len(t, due.Refunds, 1)
	require.EqualValues(t, 3, due.Payments[0].Call.Claim.Attempt)
	require.Equal(t, refund.Value.ID, due.Refunds[0].Value.ID)
	require.NoError(t, b.CardRefunds().PutOff(b.ctx, due.Refunds[0], "re_known", time.Hour))
	require.Equal(t, "re_known", value[string](b, "SELECT provider_id FROM refunds"))
	due.Payments[0].Call.Encode = encode
	_, err = b.CardPayments().Settle(b.ctx, due.Payments[0], approved)
	require.NoError(t, err)
}
