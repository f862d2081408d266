package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// waiting returns when this many sessions wait for a lock.
func (b *bundle) waiting(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return b.count("pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == n
	}, testTimeout, 2*time.Millisecond)
}

// TestErasure_OfWhatIsUnderWay has a transaction of the customer commit while the erasure waits for
// it. Each writes an address, or makes an order that could get one.
func TestErasure_OfWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	const address = `{"line1": "Elm Street 13"}`
	for name, statement := range map[string]string{
		"an address":  `UPDATE orders SET shipping_address = '` + address + `' WHERE customer_id = $1`,
		"a name":      `UPDATE customers SET name = 'Elm Street' WHERE id = $1`,
		"a new order": `INSERT INTO orders SELECT gen_random_uuid(), account_id, customer_id, status, total_amount, total_currency, '` + address + `', now(), now(), now() FROM orders WHERE customer_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			customer := b.customer().ID
			b.order(customer, 1)
			tx, err := b.pool.Begin(b.ctx)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(b.ctx) }()
			_, err = tx.Exec(b.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
			require.NoError(t, err)
			_, err = tx.Exec(b.ctx, statement, customer)
			require.NoError(t, err)
			erased := make(chan error, 1)
			go func() {
				_, err := b.EraseCustomer(b.ctx, customer)
				erased <- err
			}()
			b.waiting(1)
			require.NoError(t, tx.Commit(b.ctx))
			require.NoError(t, <-erased)
			require.Zero(t, b.count("orders WHERE shipping_address IS NOT NULL"))
			require.Equal(t, 1, b.count("customers WHERE name = 'erased' AND email = id || '@erased.invalid'"))
		})
	}
}

// TestErasure_ARequestThatWaitedWritesNoAddress: it began before the erasure, and got its lock
// after the customer was erased.
func TestErasure_ARequestThatWaitedWritesNoAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	order := b.order(customer, 1)
	release := b.hold("SELECT FROM orders WHERE id = $1 FOR UPDATE", order.ID)
	results := make(chan error, 2)
	change := checkout.OrderChange{ShippingAddress: &checkout.Address{Line1: "Elm Street 13", City: "Here", PostalCode: "1", Country: "AQ"}}
	go func() {
		_, err := b.UpdateOrder(b.ctx, b.call("address", change), order.ID, change)
		results <- err
	}()
	b.waiting(1)
	go func() {
		_, err := b.EraseCustomer(b.ctx, customer)
		results <- err
	}()
	b.waiting(2)
	release()
	for range 2 {
		if err := <-results; err != nil {
			requireCode(t, "customer_not_found", err)
		}
	}
	require.Zero(t, b.count("orders WHERE shipping_address IS NOT NULL"))
	require.Zero(t, b.count("idempotency_keys WHERE position('Elm'::bytea IN response_body) > 0"))
}

// TestErasure_LeavesNobodyToBeFound, and others as they were.
func TestErasure_LeavesNobodyToBeFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone, other := b.customer(), b.customer()
	b.topUp(gone.ID, 500)
	order := b.order(gone.ID, 1)
	_, err := b.EraseCustomer(b.ctx, gone.ID)
	require.NoError(t, err)

	name := "Ada again"
	_, err = b.Customer(b.ctx, b.account, gone.ID)
	requireCode(t, "customer_not_found", err)
	_, err = b.UpdateCustomer(b.ctx, b.keyless(), gone.ID, checkout.CustomerChange{Name: &name})
	requireCode(t, "customer_not_found", err)
	_, err = b.PlaceOrder(b.ctx, b.keyless(), wants(gone.ID, "tee-black", 1))
	requireCode(t, "customer_not_found", err)
	_, err = b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{ShippingAddress: &checkout.Address{Line1: "Elm Street 13"}})
	requireCode(t, "customer_not_found", err)
	_, err = b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{Cancel: true})
	require.NoError(t, err, "the order goes on")
	answer, err := b.CreateCustomer(b.ctx, b.keyless(), checkout.NewCustomer{Name: gone.Name, Email: gone.Email})
	require.NotEmpty(t, decode[checkout.Customer](t, answer, err), "the address is free")

	still, err := b.Customer(b.ctx, b.account, other.ID)
	require.NoError(t, err)
	require.Equal(t, other, still)
	_, err = b.EraseCustomer(b.ctx, uuid.New())
	requireCode(t, "customer_not_found", err)
}
