package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

func TestReplay_IsByteIdentical(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := wants(b.customer().ID, "mug-white", 2)
	call := b.call("k", wanted)
	first, err := b.PlaceOrder(b.ctx, call, wanted)
	require.NoError(t, err)
	require.False(t, first.Replayed)

	again, err := b.PlaceOrder(b.ctx, call, wanted)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	expected := contentOf(first)
	expected.Replayed, expected.KeptFor = true, contentOf(again).KeptFor
	require.Equal(t, expected, contentOf(again))
	require.InDelta(t, time.Hour, contentOf(again).KeptFor, float64(time.Minute))
	require.Equal(t, 1, b.count("orders"))
	require.EqualValues(t, plenty-2, b.stock("mug-white"))
}

func TestReplay_NamesTheRequestThatItAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type named struct{}
	b.traceParent = func(ctx context.Context) string { return ctx.Value(named{}).(string) }
	wanted := wants(b.customer().ID, "mug-white", 2)
	call := b.call("k", wanted)
	first, err := b.PlaceOrder(context.WithValue(b.ctx, named{}, "first"), call, wanted)
	require.NoError(t, err)
	require.Empty(t, contentOf(first).TraceParent)

	again, err := b.PlaceOrder(context.WithValue(b.ctx, named{}, "second"), call, wanted)
	require.NoError(t, err)
	require.Equal(t, "first", contentOf(again).TraceParent)
	known, err := b.Key(b.ctx, b.account, "k")
	require.NoError(t, err)
	require.Equal(t, "first", contentOf(known.Answer).TraceParent)
}

func TestReply_MayBeEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := b.call("k", nil)
	wanted := checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"}
	call.Encode = func(any, *checkout.Error) any { return authority.Answer{Status: 204} }
	_, err := b.CreateCustomer(b.ctx, call, wanted)
	require.NoError(t, err)
	again, err := b.CreateCustomer(b.ctx, call, wanted)
	require.NoError(t, err)
	require.Equal(t, authority.Result{Answer: authority.Answer{Status: 204, Body: []byte{}}, Replayed: true, KeptFor: contentOf(again).KeptFor}, contentOf(again))
}

func TestClaim_RefusesAnotherRequestUnderTheSameKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	wanted, other := wants(customer, "mug-white", 1), wants(customer, "mug-white", 2)
	_, err := b.PlaceOrder(b.ctx, b.call("k", wanted), wanted)
	require.NoError(t, err)
	_, err = b.PlaceOrder(b.ctx, b.call("k", other), other)
	require.ErrorIs(t, err, checkout.ErrKeyReused)
	_, err = b.TopUp(b.ctx, b.call("k", "top-up"), checkout.NewTopUp{CustomerID: customer, Amount: usd(1)})
	require.ErrorIs(t, err, checkout.ErrKeyReused)
	require.Equal(t, 1, b.count("orders"))
	require.Zero(t, b.balance(customer))
}

func TestKey_BelongsToItsAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"}
	mine, err := b.CreateCustomer(b.ctx, b.call("k", wanted), wanted)
	require.NoError(t, err)
	call := b.call("k", "something else")
	call.Account = b.other
	theirs, err := b.CreateCustomer(b.ctx, call, wanted)
	require.NoError(t, err)
	require.False(t, theirs.Replayed)
	require.NotEqual(t, contentOf(mine).Body, contentOf(theirs).Body)
}

func TestClaim_OfConcurrentRequestsHasOneEffectAndOneAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := wants(b.customer().ID, "mug-white", 1)
	call := b.call("k", wanted)
	answers := inParallel(16, func(int) result { return resultOf(b.PlaceOrder(b.ctx, call, wanted)) })
	fresh := 0
	for _, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, contentOf(answers[0].answer).Body, contentOf(a.answer).Body)
		if !a.answer.Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, 1, b.count("orders"))
	require.EqualValues(t, plenty-1, b.stock("mug-white"))
}

func TestFinalError_IsKeptAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := wants(b.customer().ID, "limited-print", 11)
	call := b.call("k", wanted)
	before := b.count("outbox")
	first, err := b.PlaceOrder(b.ctx, call, wanted)
	requireRefused(t, "out_of_stock", first, err)
	require.Zero(t, b.count("orders"))
	require.Equal(t, before, b.count("outbox"))
	require.EqualValues(t, 10, b.stock("limited-print"))
	require.Equal(t, "failed", value[string](b, "SELECT status FROM idempotency_keys"))

	_, err = b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "limited-print", Name: "More", Price: usd(1), Stock: 100})
	require.NoError(t, err)
	again, err := b.PlaceOrder(b.ctx, call, wanted)
	requireRefused(t, "out_of_stock", again, err)
	require.True(t, again.Replayed)
	require.Zero(t, b.count("orders"))
}

func TestClaim_RefusalChangesNothingAndFreesTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	taken := b.customer()
	wanted := checkout.NewCustomer{Name: "Eve", Email: taken.Email}
	_, err := b.CreateCustomer(b.ctx, b.call("k", wanted), wanted)
	requireCode(t, "email_taken", err)
	require.Zero(t, b.count("idempotency_keys WHERE status <> 'refused'"))
	require.Equal(t, 1, b.count("customers"))
	require.Equal(t, 1, b.count("outbox"))

	wanted.Email = "eve@example.com"
	answer, err := b.CreateCustomer(b.ctx, b.call("k", wanted), wanted)
	require.Equal(t, wanted.Email, decode[checkout.Customer](t, answer, err).Email)

	_, err = b.PlaceOrder(b.ctx, b.call("p", 1), wants(taken.ID, "no-such", 1))
	requireCode(t, "unknown_product", err)
	_, err = b.PlaceOrder(b.ctx, b.call("p", 1), wants(newID(), "mug-white", 1))
	requireCode(t, "customer_not_found", err)
	require.Zero(t, b.count("idempotency_keys WHERE key = 'p' AND status <> 'refused'"))
}

func TestFinalError_WithoutAKeyIsNotKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wants(b.customer().ID, "limited-print", 11))
	requireRefused(t, "out_of_stock", answer, err)
	require.Zero(t, b.count("idempotency_keys"))
}

func TestAccount_UnknownChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"}
	b.account = newID()
	_, err := b.CreateCustomer(b.ctx, b.keyless(), wanted)
	require.ErrorIs(t, err, checkout.ErrUnauthorized)
	_, err = b.CreateCustomer(b.ctx, b.call("k", wanted), wanted)
	require.Error(t, err)
	require.Zero(t, b.count("customers"))
}

func TestCardOperation_NeedsAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	_, err := b.CardPayments().Begin(b.ctx, b.keyless(), checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard})
	require.ErrorIs(t, err, authority.ErrNoKey)
	_, err = b.CardPayments().Settle(b.ctx, checkout.Taken[checkout.Payment]{Call: b.keyless()}, approved)
	require.ErrorIs(t, err, authority.ErrNoKey)
	require.Equal(t, checkout.OrderPending, b.orderStatus(order.ID))
}

func TestReply_IsKeptForItsTTL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wanted := checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"}
	_, err := b.CreateCustomer(b.ctx, b.call("k", wanted), wanted)
	require.NoError(t, err)
	require.True(t, value[bool](b, "SELECT expires_at = created_at + interval '1 hour' AND completed_at IS NOT NULL FROM idempotency_keys"))
}

// TestOnce_WritesChangesWithWhatIsKept: a final error may have changes, such as a decline. What the
// client may correct has none.
func TestOnce_WritesChangesWithWhatIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	expire := func(key string, refused *checkout.Error) result {
		return resultOf(once(b.ctx, b.Store, b.call(key, 1), b.locking(order.ID, func(*transaction) (checkout.Order, checkout.Changes, *checkout.Error) {
			return order, checkout.ExpireOrder(order, order.UpdatedAt), refused
		})))
	}
	requireCode(t, "email_taken", expire("refused", checkout.EmailTaken()).err)
	require.Equal(t, checkout.OrderPending, b.orderStatus(order.ID))
	require.Equal(t, "second_thoughts", expire("final", &checkout.Error{Code: "second_thoughts"}).code())
	require.Equal(t, checkout.OrderExpired, b.orderStatus(order.ID))
	require.Equal(t, "failed", value[string](b, "SELECT status FROM idempotency_keys WHERE key = 'final'"))
}
