package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestPipeline_ReadsResultsInOrderAndAfterTheRoundTrip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.begin(b.ctx, b.account)
	require.NoError(t, err)
	defer tx.close(b.ctx)
	tx.started = tx.Now(b.ctx, []uuid.UUID{b.account})
	first, second := tx.Now(b.ctx, []uuid.UUID{b.account}), tx.Now(b.ctx, []uuid.UUID{b.account})
	_, err = one(first)
	require.ErrorContains(t, err, "before it was there")
	require.NoError(t, tx.load(b.ctx))
	now, err := one(second)
	require.NoError(t, err)
	require.Equal(t, tx.now, now)
	_, err = one(first)
	require.ErrorContains(t, err, "out of order")
}
