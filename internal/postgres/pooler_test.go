package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestStore_WorksInEachQueryMode makes each kind of change, and each kind of parameter.
func TestStore_WorksInEachQueryMode(t *testing.T) {
	t.Parallel()
	testenv.EachQueryMode(t, func(t *testing.T, via func(string) string) {
		b := setup(t)
		b.Store = NewStore(open(t, via(b.pool.Config().ConnString())), Options{})
		require.NoError(t, authority.CheckPool(b.ctx, b.pool))
		customer := b.customer().ID
		b.topUp(customer, 1_000_000)
		for _, err := range inParallel(16, func(int) error {
			_, err := b.PlaceOrder(b.ctx, b.call(newID().String(), 1), wants(customer, "sticker-pack", 1))
			return err
		}) {
			require.NoError(t, err)
		}
		order := b.order(customer, 1)
		address := checkout.Address{Line1: "1 Way", City: "Bath", PostalCode: "BA1", Country: "GB"}
		_, err := b.UpdateOrder(b.ctx, b.call("address", 1), order.ID, checkout.OrderChange{ShippingAddress: &address})
		require.NoError(t, err)
		stored, err := b.Order(b.ctx, b.account, order.ID)
		require.NoError(t, err)
		require.Equal(t, &address, stored.ShippingAddress)

		b.pay(order, checkout.MethodCard)
		payment := b.pay(b.order(customer, 1), checkout.MethodWallet)
		_, err = b.RefundToWallet(b.ctx, b.call("refund", 1), checkout.NewRefund{PaymentID: payment.ID})
		require.NoError(t, err)
		begun := b.beginCardPayment("taken over")
		b.resume(begun)
		due, err := b.TakeDue(b.ctx, 0, 9)
		require.NoError(t, err)
		require.Len(t, due.Payments, 1)
		due.Payments[0].Call.Encode = encode
		_, err = b.CardPayments().Settle(b.ctx, due.Payments[0], approved)
		require.NoError(t, err)

		expired := b.order(customer, 1)
		_, err = b.pool.Exec(b.ctx, "UPDATE orders SET expires_at = now() - interval '1 s' WHERE id = $1", expired.ID)
		require.NoError(t, err)
		_, err = b.ExpireOrders(b.ctx, 9)
		require.NoError(t, err)
		require.Equal(t, checkout.OrderExpired, b.orderStatus(expired.ID))
		found, err := b.Key(b.ctx, b.account, "address")
		require.NoError(t, err)
		require.Equal(t, checkout.KeyState("completed"), found.State)
		events, _, err := NewOutbox(b.pool).Read(b.ctx, 0, 9)
		require.NoError(t, err)
		require.NotEmpty(t, events)
		b.requireBooks()
	})
}

// TestLock_OfAPausedReplicaIsReleasedBehindAPooler, which drops the limits of a session.
func TestLock_OfAPausedReplicaIsReleasedBehindAPooler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	pool := open(t, testenv.InQueryMode(testenv.PgBouncer(t, b.pool.Config().ConnString(), "transaction").URL, "cache_describe"))
	store := NewStore(pool, Options{})
	_, err := once(b.ctx, store, b.call("k", 1), b.locking(order.ID, func(tx *transaction) (checkout.Order, checkout.Changes, *checkout.Error) {
		for name, limit := range map[string]time.Duration{
			"idle_in_transaction_session_timeout": idleInTransactionTimeout, "lock_timeout": lockTimeout, "statement_timeout": statementTimeout,
		} {
			var set time.Duration
			require.NoError(t, tx.QueryRow(b.ctx, "SELECT current_setting($1)::interval", name).Scan(&set))
			require.Equal(t, limit, set, name)
		}
		return order, checkout.Changes{}, nil
	}))
	require.NoError(t, err)
}

// TestCheckPool_RefusesAQueryModeThatNeedsSessions behind a pooler that keeps none, and no other.
func TestCheckPool_RefusesAQueryModeThatNeedsSessions(t *testing.T) {
	t.Parallel()
	direct := testenv.Postgres(t)
	check := func(url string) error { return authority.CheckPool(t.Context(), open(t, url)) }
	shared, session := testenv.PgBouncer(t, direct, "transaction"), testenv.PgBouncer(t, direct, "session")
	for _, mode := range testenv.SharedModes {
		require.NoError(t, check(testenv.InQueryMode(shared.URL, mode)), mode)
	}
	for _, mode := range testenv.SessionModes {
		require.NoError(t, check(testenv.InQueryMode(direct, mode)), mode)
		require.NoError(t, check(testenv.InQueryMode(session.URL, mode)), mode)
		for range 3 { // as often as a replica is started
			err := check(testenv.InQueryMode(shared.URL, mode))
			require.ErrorContains(t, err, "default_query_exec_mode", mode)
			require.True(t, IsPermanent(err))
		}
	}
}

// TestCheckPool_TellsWhatWaitingDoesNotHelp from what it may help.
func TestCheckPool_TellsWhatWaitingDoesNotHelp(t *testing.T) {
	t.Parallel()
	direct := testenv.Postgres(t)
	behind := func(databaseURL string) string {
		return testenv.InQueryMode(testenv.PgBouncer(t, databaseURL, "transaction").URL, "exec")
	}
	for url, permanent := range map[string]bool{
		direct + "&user=nobody":                                                      true,
		direct + "&password=wrong":                                                   true,
		direct + "&dbname=nothing":                                                   true,
		behind(direct) + "&statement_timeout=4000":                                   true, // 08P01, an unsupported startup parameter
		"postgres://127.0.0.1:1/oncepay":                                             false,
		behind("postgres://nobody:p@127.0.0.1:1/oncepay?sslmode=disable"):            true,
		behind("postgres://pgtdbuser:pgtdbpass@127.0.0.1:1/oncepay?sslmode=disable"): false,
	} {
		err := authority.CheckPool(t.Context(), open(t, url))
		require.Error(t, err, url)
		require.Equal(t, permanent, IsPermanent(err), "%s: %v", url, err)
	}
}

func TestMigrate_WorksBehindAPooler(t *testing.T) {
	t.Parallel()
	url := testenv.PgBouncer(t, testenv.EmptyPostgres(t), "transaction").URL
	for _, err := range inParallel(6, func(int) error { _, err := Migrate(t.Context(), url, "up"); return err }) {
		require.NoError(t, err)
	}
	require.NoError(t, CheckSchema(t.Context(), open(t, testenv.InQueryMode(url, "exec"))))
}
