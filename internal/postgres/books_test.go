package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/internal/checkout"
)

// books are what must never be found in the database, by what would be wrong.
var books = map[string]string{
	"a ledger transaction does not sum to zero": `SELECT transaction_id FROM ledger_entries GROUP BY transaction_id, currency HAVING sum(amount) <> 0`,
	"a ledger transaction has no entries":       `SELECT id FROM ledger_transactions t WHERE NOT EXISTS (SELECT FROM ledger_entries e WHERE e.transaction_id = t.id)`,
	"a wallet's balance is not what the ledger says": `SELECT customer_id FROM wallets WHERE balance <>
		(SELECT coalesce(-sum(amount), 0) FROM ledger_entries WHERE ledger_account = 'wallet:' || customer_id)`,
	"money moved without a ledger transaction, or the other way round": `
		(SELECT id FROM top_ups UNION ALL SELECT id FROM payments WHERE status = 'succeeded' UNION ALL SELECT id FROM refunds WHERE status = 'succeeded')
		EXCEPT ALL SELECT subject FROM ledger_transactions UNION ALL
		(SELECT subject FROM ledger_transactions EXCEPT ALL (SELECT id FROM top_ups UNION ALL
		 SELECT id FROM payments WHERE status = 'succeeded' UNION ALL SELECT id FROM refunds WHERE status = 'succeeded'))`,
	"a payment's refunded amount is not that of its refunds": `SELECT id FROM payments p WHERE refunded <>
		(SELECT coalesce(sum(amount), 0) FROM refunds r WHERE r.payment_id = p.id AND r.status <> 'declined')`,
	"an order's status does not follow from its payment and refunds": `
		SELECT id FROM (SELECT o.id, o.status, o.total_amount, p.status AS payment, (SELECT coalesce(sum(amount), 0)
			FROM refunds r WHERE r.order_id = o.id AND r.status = 'succeeded') AS refunded
			FROM orders o LEFT JOIN payments p ON p.order_id = o.id AND p.status <> 'declined') AS facts
		WHERE NOT CASE status WHEN 'pending' THEN payment IS NULL WHEN 'cancelled' THEN payment IS NULL WHEN 'expired' THEN payment IS NULL
			WHEN 'paying' THEN payment = 'processing' WHEN 'paid' THEN payment = 'succeeded' AND refunded = 0
			WHEN 'partially_refunded' THEN payment = 'succeeded' AND refunded BETWEEN 1 AND total_amount - 1
			WHEN 'refunded' THEN payment = 'succeeded' AND refunded = total_amount ELSE false END`,
	"a key in progress stands for nothing in progress": `SELECT resource_id FROM idempotency_keys WHERE status = 'in_progress' EXCEPT ALL
		(SELECT id FROM payments WHERE status = 'processing' UNION ALL SELECT id FROM refunds WHERE status = 'processing')`,
	"something in progress has no key in progress": `
		(SELECT id FROM payments WHERE status = 'processing' UNION ALL SELECT id FROM refunds WHERE status = 'processing')
		EXCEPT ALL SELECT resource_id FROM idempotency_keys WHERE status = 'in_progress'`,
}

// requireBooks checks what must hold at any time.
func (b *bundle) requireBooks() {
	b.t.Helper()
	for wrong, query := range books {
		require.Zero(b.t, b.count("("+query+") AS found"), wrong)
	}
}

// requireStock checks that what is missing of a product is in orders.
func (b *bundle) requireStock(sku string, initially int64) {
	b.t.Helper()
	held := value[int64](b, `SELECT coalesce(sum(quantity), 0) FROM order_items i JOIN orders o ON o.id = i.order_id
		WHERE i.account_id = $1 AND sku = $2 AND status NOT IN ('cancelled', 'expired')`, b.account, sku)
	require.Equal(b.t, initially, b.stock(sku)+held)
}

// shop is driven through random commands, some of them under a key that was used before.
type shop struct {
	*bundle
	sku      string
	customer uuid.UUID
	given    []given
	orders   []uuid.UUID
	payments []checkout.Payment
	lost     []lost
}

// lost is a card payment whose handler is gone.
type lost struct {
	call   checkout.Call
	wanted checkout.NewPayment
}

// given is a command with the answer it got.
type given struct {
	again func() (checkout.Answer, error)
	body  string
}

// do runs a command under a new key and remembers it for retry.
func (s *shop) do(t *rapid.T, command func(call checkout.Call) (checkout.Answer, error)) checkout.Answer {
	call := s.call(newID().String(), 1)
	answer, err := command(call)
	if err != nil {
		var domain *checkout.Error
		require.ErrorAs(t, err, &domain)
		require.True(t, domain.Retryable)
		return checkout.Answer{}
	}
	s.given = append(s.given, given{func() (checkout.Answer, error) { return command(call) }, string(contentOf(answer).Body)})
	return answer
}

func (s *shop) pick(t *rapid.T) uuid.UUID {
	if len(s.orders) == 0 {
		t.Skip("no order yet")
	}
	return rapid.SampledFrom(s.orders).Draw(t, "order")
}

func (s *shop) placeOrder(t *rapid.T) {
	wanted := wants(s.customer, s.sku, rapid.Int32Range(1, 4).Draw(t, "quantity"))
	answer := s.do(t, func(call checkout.Call) (checkout.Answer, error) { return s.PlaceOrder(s.ctx, call, wanted) })
	if contentOf(answer).Status == 201 {
		s.orders = append(s.orders, decode[checkout.Order](t, answer, nil).ID)
	}
}

func (s *shop) cancelOrder(t *rapid.T) {
	order := s.pick(t)
	s.do(t, func(call checkout.Call) (checkout.Answer, error) {
		return s.UpdateOrder(s.ctx, call, order, checkout.OrderChange{Cancel: true})
	})
}

func (s *shop) topUpWallet(t *rapid.T) {
	wanted := checkout.NewTopUp{CustomerID: s.customer, Amount: usd(rapid.Int64Range(1, 50_000).Draw(t, "amount"))}
	s.do(t, func(call checkout.Call) (checkout.Answer, error) { return s.TopUp(s.ctx, call, wanted) })
}

func (s *shop) payFromWallet(t *rapid.T) {
	wanted := checkout.NewPayment{OrderID: s.pick(t), Method: checkout.MethodWallet}
	s.paid(t, s.do(t, func(call checkout.Call) (checkout.Answer, error) { return s.PayFromWallet(s.ctx, call, wanted) }))
}

func (s *shop) payByCard(t *rapid.T) {
	wanted := checkout.NewPayment{OrderID: s.pick(t), Method: checkout.MethodCard, Token: "tok_visa"}
	result := rapid.SampledFrom([]checkout.GatewayResult{approved, declined}).Draw(t, "result")
	unknown := rapid.IntRange(0, 2).Draw(t, "unknown outcomes before")
	s.paid(t, s.do(t, func(call checkout.Call) (checkout.Answer, error) {
		for range unknown {
			if _, err := s.CardPayments().Begin(s.ctx, call, wanted); err != nil {
				return checkout.Answer{}, err
			}
		}
		begun, err := s.CardPayments().Begin(s.ctx, call, wanted)
		if err != nil || begun.Answer != nil {
			return valueOf(begun.Answer), err
		}
		return s.CardPayments().Settle(s.ctx, begun.Taken, result)
	}))
}

// losePayment begins a card payment that only a reconciler will settle.
func (s *shop) losePayment(t *rapid.T) {
	wanted, call := checkout.NewPayment{OrderID: s.pick(t), Method: checkout.MethodCard, Token: "tok_visa"}, s.call(newID().String(), 1)
	begun, err := s.CardPayments().Begin(s.ctx, call, wanted)
	if err == nil && begun.Answer == nil {
		s.lost = append(s.lost, lost{call, wanted})
	}
}

// reconcile settles all that was lost, so that it can be retried like anything else.
func (s *shop) reconcile(t *rapid.T) {
	p := &provider{declines: rapid.SampledFrom([]string{"", "card_declined"}).Draw(t, "declines")}
	for settled := 1; settled > 0; { // also what earlier shops have lost and left
		var err error
		settled, err = s.impatient(p).RunOnce(s.ctx)
		require.NoError(t, err)
	}
	for _, l := range s.lost {
		again := func() (checkout.Answer, error) {
			begun, err := s.CardPayments().Begin(s.ctx, l.call, l.wanted)
			return valueOf(begun.Answer), err
		}
		answer, err := again()
		require.NoError(t, err)
		require.True(t, answer.Replayed, "it was settled")
		s.given = append(s.given, given{again, string(contentOf(answer).Body)})
		s.paid(t, answer)
	}
	s.lost = nil
}

// expire lets an order's time be up.
func (s *shop) expire(t *rapid.T) {
	s.timeUp(checkout.Order{ID: s.pick(t)})
	_, err := s.ExpireOrders(s.ctx, 10)
	require.NoError(t, err)
}

func (s *shop) paid(t *rapid.T, answer checkout.Answer) {
	if contentOf(answer).Status == 201 {
		s.payments = append(s.payments, decode[checkout.Payment](t, answer, nil))
	}
}

func (s *shop) refundPayment(t *rapid.T) {
	if len(s.payments) == 0 {
		t.Skip("no payment yet")
	}
	payment := rapid.SampledFrom(s.payments).Draw(t, "payment")
	wanted := refundWanted(payment.ID, rapid.Int64Range(1, payment.Amount.Amount).Draw(t, "amount"))
	result := rapid.SampledFrom([]checkout.GatewayResult{approved, declined}).Draw(t, "result")
	s.do(t, func(call checkout.Call) (checkout.Answer, error) {
		if payment.Method == checkout.MethodWallet {
			return s.RefundToWallet(s.ctx, call, wanted)
		}
		begun, err := s.CardRefunds().Begin(s.ctx, call, wanted)
		if err != nil || begun.Answer != nil {
			return valueOf(begun.Answer), err
		}
		return s.CardRefunds().Settle(s.ctx, begun.Taken, result)
	})
}

// retry repeats some earlier command.
func (s *shop) retry(t *rapid.T) {
	if len(s.given) == 0 {
		t.Skip("nothing to retry")
	}
	earlier := rapid.SampledFrom(s.given).Draw(t, "earlier")
	answer, err := earlier.again()
	require.NoError(t, err)
	require.True(t, answer.Replayed)
	require.Equal(t, earlier.body, string(contentOf(answer).Body))
}

func valueOf(answer *checkout.Answer) checkout.Answer {
	if answer == nil {
		return checkout.Answer{}
	}
	return *answer
}

func TestBooks_AreRightAfterAnyCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(t *rapid.T) {
		s := &shop{bundle: b, sku: newID().String(), customer: b.customer().ID}
		_, err := s.PutProduct(s.ctx, s.keyless(), checkout.ProductWrite{SKU: s.sku, Name: "Rare", Price: usd(2500), Stock: 20})
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"place": s.placeOrder, "cancel": s.cancelOrder, "top up": s.topUpWallet, "wallet": s.payFromWallet,
			"card": s.payByCard, "refund": s.refundPayment, "retry": s.retry,
			"lose": s.losePayment, "reconcile": s.reconcile, "expire": s.expire,
			"": func(*rapid.T) { b.requireBooks(); b.requireStock(s.sku, 20) },
		})
	})
}
