package postgres

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// deciding does something beside each decision of a command: n is 1 for the first one.
func deciding[T any](run command[T], before, after func(n int)) command[T] {
	n := 0
	return func(ctx context.Context, tx *transaction) decision[T] {
		n++
		before(n)
		decide := run(ctx, tx)
		return func() (T, checkout.Changes, *checkout.Error) {
			defer after(n)
			return decide()
		}
	}
}

// meanwhile does something between the reading and the writing of a command, at its first run.
func meanwhile[T any](run command[T], do func()) command[T] {
	return deciding(run, func(int) {}, func(n int) {
		if n == 1 {
			do()
		}
	})
}

// place places an order, and does something while it is decided.
func (b *bundle) place(call checkout.Call, wanted checkout.NewOrder, do func()) (checkout.Answer, error) {
	b.t.Helper()
	return onceUpToDate(b.ctx, b.Store, call, meanwhile(placeOrder(wanted), do))
}

// sell places an order of another customer.
func (b *bundle) sell(sku string, quantity int32) {
	b.t.Helper()
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wants(b.customer().ID, sku, quantity))
	require.NoError(b.t, err)
	require.Equal(b.t, 201, contentOf(answer).Status)
}

func TestPlaceOrder_DecidesAgainWhenTheStockNoLongerSuffices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call, wanted := b.call("k", 1), wants(b.customer().ID, "limited-print", 10)
	answer, err := b.place(call, wanted, func() { b.sell("limited-print", 1) })
	requireRefused(t, "out_of_stock", answer, err)
	require.EqualValues(t, 9, b.stock("limited-print"))
	require.Equal(t, 1, b.count("orders"))
	require.Equal(t, "failed", value[string](b, "SELECT status FROM idempotency_keys"))
}

func TestPlaceOrder_TakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer, err := b.place(b.call("k", 1), wants(b.customer().ID, "limited-print", 1), func() { b.sell("limited-print", 9) })
	require.NoError(t, err)
	require.Equal(t, 201, contentOf(answer).Status)
	require.Zero(t, b.stock("limited-print"))
}

func TestPlaceOrder_HasThePriceOfTheMomentItIsPlaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, price := range []checkout.Money{usd(999), {Amount: 999, Currency: "EUR"}} {
		answer, err := b.place(b.keyless(), wants(b.customer().ID, "tee-black", 1), func() {
			_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "tee-black", Name: "Tee", Price: price, Stock: 5})
			require.NoError(t, err)
		})
		require.Equal(t, price, decode[checkout.Order](t, answer, err).Total)
		require.EqualValues(t, 4, b.stock("tee-black"))
	}
}

// TestClaim_IsDecidedWhenItIsWritten has another request use the key after the look whether it is
// taken.
func TestClaim_IsDecidedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	wanted := wants(customer, "mug-white", 1)
	order := func(call checkout.Call, wanted checkout.NewOrder) (answer checkout.Answer) {
		answer, _ = b.PlaceOrder(b.ctx, call, wanted)
		return answer
	}
	var first checkout.Answer
	again, err := b.place(b.call("same", 1), wanted, func() { first = order(b.call("same", 1), wanted) })
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, contentOf(first).Body, contentOf(again).Body)

	_, err = b.place(b.call("other", 1), wanted, func() { order(b.call("other", 2), wanted) })
	require.ErrorIs(t, err, checkout.ErrKeyReused)

	older, newer := b.attempts("refused", 1)
	_, err = b.place(older, wanted, func() { order(newer, wants(customer, "no-such", 1)) })
	require.ErrorIs(t, err, checkout.ErrNewerAttemptRefused)

	older, newer = b.attempts("corrected", 1)
	_, err = b.place(newer, wanted, func() { order(older, wants(customer, "no-such", 1)) })
	require.NoError(t, err)

	require.Equal(t, 3, b.count("orders"))
	require.EqualValues(t, plenty-3, b.stock("mug-white"))
	require.Equal(t, 3, b.count("outbox WHERE type = 'order.placed'"))
}

// TestClaim_OfCardPaymentsIsDecidedWhenItIsWritten: the second attempt resumes what the first one
// began meanwhile.
func TestClaim_OfCardPaymentsIsDecidedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	call := b.call("k", 1)
	begun := inParallel(8, func(int) checkout.Taken[checkout.Payment] {
		begun, err := b.CardPayments().Begin(b.ctx, call, wanted)
		require.NoError(t, err)
		return begun.Taken
	})
	attempts := map[int32]bool{}
	for _, payment := range begun {
		require.Equal(t, begun[0].Value.ID, payment.Value.ID)
		attempts[payment.Call.Claim.Attempt] = true
	}
	require.Len(t, attempts, 8)
	require.Equal(t, 1, b.count("payments"))
	b.requireBooks()
}

// TestCommands_WithOneKeyDoNotDeadlock uses one key for an order and for the end of another order
// of the same product.
func TestCommands_WithOneKeyDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	for range 10 {
		key, order := newID().String(), b.order(customer, 1)
		answers := inParallel(8, func(i int) result {
			if i%2 == 0 {
				return resultOf(b.PlaceOrder(b.ctx, b.call(key, "place"), wants(customer, "tee-black", 1)))
			}
			return resultOf(b.UpdateOrder(b.ctx, b.call(key, "cancel"), order.ID, checkout.OrderChange{Cancel: true}))
		})
		require.Equal(t, map[string]int{"": 4, "idempotency_key_reused": 4}, tally(answers))
	}
}

// TestPlaceOrder_SellsTheLastUnitThatComesBack: the last unit is lost before the commit and is back
// when the order is decided again, so its client may not be told that there is none.
func TestPlaceOrder_SellsTheLastUnitThatComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.sell("limited-print", 9)
	var other checkout.Order
	runs, wanted := 0, wants(customer, "limited-print", 1)
	comesBack := func(n int) {
		if runs = n; n == 2 {
			_, err := b.UpdateOrder(b.ctx, b.keyless(), other.ID, checkout.OrderChange{Cancel: true})
			require.NoError(t, err)
		}
	}
	isLost := func(n int) {
		if n == 1 {
			placed, err := b.PlaceOrder(b.ctx, b.keyless(), wanted)
			other = decode[checkout.Order](t, placed, err)
		}
	}
	answer, err := onceUpToDate(b.ctx, b.Store, b.call("k", 1), deciding(placeOrder(wanted), comesBack, isLost))
	require.NoError(t, err)
	require.Equal(t, 201, contentOf(answer).Status)
	require.Equal(t, 2, runs)
	require.Zero(t, b.stock("limited-print"))
}

// TestPlaceOrder_LocksItsProductsAfterSomeDecisions: the last decision cannot be outdated.
func TestPlaceOrder_LocksItsProductsAfterSomeDecisions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runs := 0
	run := deciding(placeOrder(wants(b.customer().ID, "tee-black", 1)), func(n int) { runs = n }, func(n int) {
		if n <= maxLockFree {
			b.putPrice("tee-black", int64(n))
			return
		}
		_, locked := b.pool.Exec(b.ctx, "SELECT FROM products WHERE sku = 'tee-black' FOR UPDATE NOWAIT")
		require.ErrorContains(t, locked, "could not obtain lock")
	})
	answer, err := onceUpToDate(b.ctx, b.Store, b.call("k", 1), run)
	require.Equal(t, usd(maxLockFree), decode[checkout.Order](t, answer, err).Total)
	require.Equal(t, maxLockFree+1, runs)
	require.EqualValues(t, plenty-1, b.stock("tee-black"))
}

// putPrice sets the price of a product, and its stock to plenty.
func (b *bundle) putPrice(sku string, cents int64) {
	b.t.Helper()
	_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: sku, Name: "Tee", Price: usd(cents), Stock: plenty})
	require.NoError(b.t, err)
}

func TestPlaceOrder_SucceedsWhileAPriceChangesAllTheTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	ctx, stop := context.WithCancel(b.ctx)
	var group sync.WaitGroup
	for n := range 2 {
		group.Go(func() {
			for cents := int64(n + 1); ctx.Err() == nil; cents++ {
				b.putPrice("tee-black", cents)
			}
		})
	}
	for range 10 {
		answer, err := b.PlaceOrder(b.ctx, b.keyless(), wants(customer, "tee-black", 1))
		if assert.NoError(t, err) {
			assert.Equal(t, 201, contentOf(answer).Status)
		}
	}
	stop()
	group.Wait()
}

// TestOnceUpToDate_GivesUpWhenAllChangesEachTime: the request then keeps nothing, and its key is
// free.
func TestOnceUpToDate_GivesUpWhenAllChangesEachTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call, runs := b.call("k", 1), 0
	_, err := onceUpToDate(b.ctx, b.Store, call, func(context.Context, *transaction) decision[checkout.Order] {
		runs++
		return func() (checkout.Order, checkout.Changes, *checkout.Error) {
			return checkout.Order{}, checkout.Changes{}, checkout.Unavailable("commit", errOutdated)
		}
	})
	requireUnavailable(t, err)
	require.ErrorIs(t, err, errOutdated)
	require.Equal(t, maxDecisions, runs)
	require.Zero(t, b.count("orders")+b.count("idempotency_keys"))
	answer, err := b.PlaceOrder(b.ctx, call, wants(b.customer().ID, "tee-black", 1))
	require.NoError(t, err)
	require.Equal(t, 201, contentOf(answer).Status)
}

// TestPlaceOrder_LocksAProductAtTheCommitAlone: a transaction that has decided and not written does
// not keep another one from the product.
func TestPlaceOrder_LocksAProductAtTheCommitAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.place(b.keyless(), wants(b.customer().ID, "tee-black", 1), func() {
		_, err := b.pool.Exec(b.ctx, "SELECT FROM products WHERE sku = 'tee-black' FOR UPDATE NOWAIT")
		require.NoError(t, err)
	})
	require.NoError(t, err)
}

// TestPlaceOrder_WritesItsKeyOnceAndLocksNoAccount looks at the row versions: the second version of
// the only row would be at (0,2), and a lock leaves its transaction in xmax.
func TestPlaceOrder_WritesItsKeyOnceAndLocksNoAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lastLocks := func() []string { return value[[]string](b, "SELECT array_agg(xmax::text ORDER BY id) FROM accounts") }
	wanted := wants(b.customer().ID, "tee-black", 1)
	before := lastLocks()
	_, err := b.PlaceOrder(b.ctx, b.call("k", 1), wanted)
	require.NoError(t, err)
	require.Equal(t, "(0,1)", value[string](b, "SELECT ctid::text FROM idempotency_keys"))
	require.Equal(t, before, lastLocks())
}
