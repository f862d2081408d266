package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestUpdateCustomer_ChangesWhatIsSet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := b.customer(), b.customer()
	name, email := "Ada L.", "ADA@example.com"
	answer, err := b.UpdateCustomer(b.ctx, b.keyless(), ada.ID, checkout.CustomerChange{Name: &name, Email: &email})
	changed := decode[checkout.Customer](t, answer, err)
	require.Equal(t, name, changed.Name)
	stored, err := b.Customer(b.ctx, b.account, ada.ID)
	require.NoError(t, err)
	require.Equal(t, changed, stored)
	require.Equal(t, []string{"customer.created", "customer.updated"}, b.events(ada.ID))

	lower := "ada@example.com"
	_, err = b.UpdateCustomer(b.ctx, b.keyless(), bob.ID, checkout.CustomerChange{Email: &lower})
	requireCode(t, "email_taken", err)
}
