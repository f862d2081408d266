package postgres

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestTopUp_MovesTheMoney(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	inParallel(10, func(int) error {
		_, err := b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: usd(100)})
		return err
	})
	require.EqualValues(t, 1000, b.balance(customer))
	answer, err := b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: usd(math.MaxInt64)})
	requireRefused(t, "balance_too_large", answer, err)
	answer, err = b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: checkout.Money{Amount: 1, Currency: "EUR"}})
	requireRefused(t, "currency_mismatch", answer, err)
	require.Len(t, b.events(customer), 11)
	b.requireBooks()
}
