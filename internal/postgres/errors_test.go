package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestTranslate_TextThatCannotBeStoredIsInvalid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "nul", Name: "a\x00b", Price: usd(1)})
	requireCode(t, "invalid_text", err)
	_, err = b.CreateCustomer(b.ctx, b.keyless(), checkout.NewCustomer{Name: "a\x00b", Email: "a@example.com"})
	requireCode(t, "invalid_text", err)
	order := b.order(b.customer().ID, 1)
	_, err = b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{ShippingAddress: &checkout.Address{City: "a\x00b"}})
	requireCode(t, "invalid_text", err)
}

func TestTranslate_MapsEachSQLSTATE(t *testing.T) {
	t.Parallel()
	for state, unavailable := range map[string]bool{
		"08006": true, "40001": true, "40P01": true, "53100": true, "53300": true, "55P03": true, "57014": true, "57P01": true,
		"57P03": true, "58030": true, "0A000": true, "26000": true, "42P05": true, "25006": true, "25P02": true, "25P03": true, "25P04": true,
		"22003": false, "23514": false, "42P01": false, "": false,
	} {
		cause := fmt.Errorf("in a batch: %w", &pgconn.PgError{Code: state})
		err := translate("try", cause)
		require.ErrorIs(t, err, cause)
		require.Equal(t, unavailable, errors.Is(err, &checkout.Error{Code: "service_unavailable"}), state)
	}
	require.NoError(t, translate("try", nil))
	require.Equal(t, error(checkout.ErrKeyReused), translate("try", checkout.ErrKeyReused))
	requireUnavailable(t, translate("try", errors.New("conn closed")))
}
