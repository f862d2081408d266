package checkout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var ada = Customer{ID: buyer, Name: "Ada", Email: "ada@example.com", CreatedAt: begun, UpdatedAt: begun}

func TestCreateCustomer_MakesAnEmptyWallet(t *testing.T) {
	t.Parallel()
	wanted := NewCustomer{Name: "Eve", Email: "eve@example.com"}
	eve := Customer{ID: newID, Name: "Eve", Email: "eve@example.com", CreatedAt: now, UpdatedAt: now}
	value, changes, refused := CreateCustomer(wanted, false, newID, now)
	requireDecided(t, eve, Changes{CreatedCustomer: &eve, CreatedWallet: &Wallet{CustomerID: newID, Balance: usd(0), UpdatedAt: now},
		Events: []Event{CustomerCreated(eve)}}, value, changes, refused)

	value, changes, refused = CreateCustomer(wanted, true, newID, now)
	requireRefused(t, "email_taken", true, value, changes, refused)
}

func TestUpdateCustomer_ChangesWhatIsNotNil(t *testing.T) {
	t.Parallel()
	name, email := "Augusta", "augusta@example.com"
	for _, c := range []struct {
		change CustomerChange
		want   Customer
	}{
		{CustomerChange{}, ada},
		{CustomerChange{Name: &name}, in(ada, func(c *Customer) { c.Name = name })},
		{CustomerChange{Email: &email}, in(ada, func(c *Customer) { c.Email = email })},
	} {
		c.want.UpdatedAt = now
		value, changes, refused := UpdateCustomer(ada, c.change, false, now)
		requireDecided(t, c.want, Changes{ChangedCustomer: &c.want, Events: []Event{CustomerUpdated(c.want)}}, value, changes, refused)
	}
	value, changes, refused := UpdateCustomer(ada, CustomerChange{Email: &email}, true, now)
	requireRefused(t, "email_taken", true, value, changes, refused)
	require.Equal(t, "ada@example.com", ada.Email)
}
