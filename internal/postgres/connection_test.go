package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
	"github.com/oncepay/oncepay/internal/testenv"
)

// requireUnavailable checks that an outcome is reported as unknown and safe to retry.
func requireUnavailable(t require.TestingT, err error) {
	var domain *checkout.Error
	require.ErrorAs(t, err, &domain)
	require.Equal(t, checkout.KindUnavailable, domain.Kind)
	require.True(t, domain.Retryable)
	require.Error(t, domain.Unwrap())
}

// TestOperation_HasOneEffectWhereverTheConnectionBreaks cuts the connection before and after each
// round trip of each kind of operation. The first one of a transaction is made again, the second
// one, which commits, never is. Whoever retries with the same key finds or makes one effect, and
// the money adds up.
func TestOperation_HasOneEffectWhereverTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	for _, operation := range []struct {
		name   string
		trips  int
		effect string // counts the effects of one subject
		run    func(b *bundle, store *Store, key string, subject uuid.UUID) error
	}{
		{"order", 2, "orders WHERE customer_id = $1 AND total_amount = 400", func(b *bundle, store *Store, key string, customer uuid.UUID) error {
			_, err := store.PlaceOrder(b.ctx, b.call(key, 1), wants(customer, "sticker-pack", 1))
			return err
		}},
		{"top-up", 2, "top_ups WHERE customer_id = $1 AND amount = 7", func(b *bundle, store *Store, key string, customer uuid.UUID) error {
			_, err := store.TopUp(b.ctx, b.call(key, 1), checkout.NewTopUp{CustomerID: customer, Amount: usd(7)})
			return err
		}},
		{"wallet payment", 2, "payments WHERE customer_id = $1 AND status = 'succeeded'", func(b *bundle, store *Store, key string, customer uuid.UUID) error {
			wanted := checkout.NewPayment{OrderID: b.onlyOrder(customer), Method: checkout.MethodWallet}
			_, err := store.PayFromWallet(b.ctx, b.call(key, 1), wanted)
			return err
		}},
		{"card payment", 4, "payments WHERE customer_id = $1 AND status = 'succeeded'", func(b *bundle, store *Store, key string, customer uuid.UUID) error {
			call, wanted := b.call(key, 1), checkout.NewPayment{OrderID: b.onlyOrder(customer), Method: checkout.MethodCard, Token: "tok_visa"}
			begun, err := store.CardPayments().Begin(b.ctx, call, wanted)
			if err != nil || begun.Answer != nil {
				return err
			}
			_, err = store.CardPayments().Settle(b.ctx, begun.Taken, approved)
			return err
		}},
	} {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			store, w := b.wired()
			for trip := 1; trip <= operation.trips; trip++ {
				for _, after := range []bool{false, true} {
					name := fmt.Sprintf("%s cut at round trip %d, after: %v", operation.name, trip, after)
					require.NoError(t, operation.run(b, store, "warm "+name, b.ready())) // connected, and all is prepared
					customer := b.ready()
					w.cut(trip, after)
					err := operation.run(b, store, name, customer)
					if trip%2 == 1 {
						require.NoError(t, err, name)
					} else {
						requireUnavailable(t, err)
					}
					require.NoError(t, operation.run(b, b.Store, name, customer), name)
					require.Equal(t, 1, b.count(operation.effect, customer), name)
					require.NoError(t, operation.run(b, b.Store, name, customer), name)
					require.Equal(t, 1, b.count(operation.effect, customer), name)
				}
			}
			b.requireBooks()
		})
	}
}

// ready makes a customer with money and an order.
func (b *bundle) ready() uuid.UUID {
	b.t.Helper()
	customer := b.customer().ID
	b.topUp(customer, 5000)
	b.order(customer, 1)
	return customer
}

// onlyOrder is the order of a customer who is ready.
func (b *bundle) onlyOrder(customer uuid.UUID) uuid.UUID {
	b.t.Helper()
	orders, err := b.Orders(b.ctx, b.account, checkout.OrderPage{Customer: &customer, Limit: 2})
	require.NoError(b.t, err)
	require.Len(b.t, orders, 1)
	return orders[0].ID
}

// locking is a command that decides on a locked order.
func (b *bundle) locking(order uuid.UUID, decide func(*transaction) (checkout.Order, checkout.Changes, *checkout.Error)) command[checkout.Order] {
	return func(ctx context.Context, tx *transaction) decision[checkout.Order] {
		tx.lockOrder(ctx, order)
		return func() (checkout.Order, checkout.Changes, *checkout.Error) { return decide(tx) }
	}
}

func TestTransaction_IsRolledBackWhenItsConnectionBreaks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	_, err := once(b.ctx, b.Store, b.call("k", 1), b.locking(order.ID, func(tx *transaction) (checkout.Order, checkout.Changes, *checkout.Error) {
		var pid int
		require.NoError(t, tx.QueryRow(b.ctx, "SELECT pg_backend_pid()").Scan(&pid))
		require.True(t, value[bool](b, "SELECT pg_terminate_backend($1)", pid))
		return order, checkout.ExpireOrder(order, order.UpdatedAt), nil
	}))
	requireUnavailable(t, err)
	require.Equal(t, checkout.OrderPending, b.orderStatus(order.ID))
	require.Zero(t, b.count("idempotency_keys"))
}

func TestCommit_ThatRollsBackIsUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := once(b.ctx, b.Store, b.keyless(), func(ctx context.Context, tx *transaction) decision[string] {
		return func() (string, checkout.Changes, *checkout.Error) {
			_, err := tx.Exec(ctx, "SELECT 1 / 0")
			require.Error(t, err)
			return "done", checkout.Changes{}, nil // as if the error had been overlooked
		}
	})
	require.ErrorContains(t, err, "ROLLBACK")
	requireUnavailable(t, err)
}

func TestTransaction_WithACancelledContextLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	ctx, cancel := context.WithCancel(b.ctx)
	_, err := once(ctx, b.Store, b.call("k", 1), b.locking(order.ID, func(*transaction) (checkout.Order, checkout.Changes, *checkout.Error) {
		cancel()
		return order, checkout.ExpireOrder(order, order.UpdatedAt), nil
	}))
	requireUnavailable(t, err)
	require.Zero(t, b.count("idempotency_keys"))
	b.pay(order, checkout.MethodCard) // its lock is free
}

func TestStore_RecoversAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	pool := open(t, server.URL)
	require.NoError(t, Seed(ctx, pool))
	b := &bundle{Store: NewStore(pool, Options{}), t: t, ctx: ctx, account: demoAccounts[0].id}
	wanted := wants(b.customer().ID, "mug-white", 1)
	order := func() error { _, err := b.PlaceOrder(ctx, b.call("k", wanted), wanted); return err }

	server.Stop()
	started := time.Now()
	for _, err := range inParallel(50, func(int) error { return order() }) {
		requireUnavailable(t, err)
	}
	require.Less(t, time.Since(started), transactionTimeout)
	require.Error(t, CheckSchema(ctx, pool))

	server.Start()
	for range 20 { // more than there are connections
		require.NoError(t, order())
	}
	require.Equal(t, 1, b.count("orders"))
}

// TestStore_HidesALostConnection ends all sessions, as a restart of the server does, and lets each
// kind of request be the first to find out.
func TestStore_HidesALostConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := b.impolite()
	customer := b.customer().ID
	order := b.order(customer, 1)
	call, wanted := b.call("pay", 1), checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	var begun checkout.Begun[checkout.Payment]
	for name, request := range map[string]func() error{
		"read": func() error { _, err := store.Order(b.ctx, b.account, order.ID); return err },
		"put": func() error {
			_, err := store.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "mug", Name: "Mug", Price: usd(1), Stock: 1})
			return err
		},
		"order": func() error {
			_, err := store.PlaceOrder(b.ctx, b.call("o", 1), wants(customer, "mug-white", 1))
			return err
		},
		"pay": func() (err error) {
			if begun.Value.ID == uuid.Nil {
				begun, err = store.CardPayments().Begin(b.ctx, call, wanted)
			}
			return err
		},
		"expire": func() error { _, err := store.ExpireOrders(b.ctx, 1); return err },
	} {
		b.endSessions(store)
		require.NoError(t, request(), name)
		require.NoError(t, request(), name)
	}
	b.endSessions(store)
	answer, err := store.CardPayments().Settle(b.ctx, begun.Taken, approved)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Payment](t, answer, err).Status)
	require.Equal(t, 2, b.count("orders"))
	b.requireBooks()
}

// impolite is a second store on the bundle's database, whose pool does not look whether a
// connection is alive before it hands it out.
func (b *bundle) impolite() *Store {
	b.t.Helper()
	config := b.pool.Config()
	config.MaxConns = 5
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pool, err := pgxpool.NewWithConfig(b.ctx, config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return NewStore(pool, Options{})
}

// endSessions ends all connections of a store's full pool.
func (b *bundle) endSessions(store *Store) {
	b.t.Helper()
	var held []*pgxpool.Conn
	for range store.pool.Config().MaxConns {
		conn, err := store.acquireLive(b.ctx)
		require.NoError(b.t, err)
		held = append(held, conn)
	}
	for _, conn := range held {
		require.True(b.t, value[bool](b, "SELECT pg_terminate_backend($1, 5000)", conn.Conn().PgConn().PID()), "and it has ended")
		conn.Release()
	}
}

// stampNothing makes a statement that may not be made twice.
func stampNothing(b *bundle, store *Store) error {
	_, err := write(b.ctx, store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.Payment, error) {
		return q.StampPayments(ctx, nil)
	})
	return translate("stamp payments", err)
}

func TestWrite_ThatMayHaveBeenMadeIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store, w := b.wired()
	err := stampNothing(b, store)
	require.NoError(t, err)
	w.cut(1, true)
	err = stampNothing(b, store)
	requireUnavailable(t, err)
}

// TestWrite_IsRepeatedWhenTheServerEndedTheSession: then it was not made.
func TestWrite_IsRepeatedWhenTheServerEndedTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := b.impolite()
	b.endSessions(store)
	err := stampNothing(b, store)
	require.NoError(t, err)
}
