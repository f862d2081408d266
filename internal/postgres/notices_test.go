package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// noticeOf is what the provider of these tests tells of a charge that it made.
func noticeOf(event string, p checkout.Payment) checkout.Notice {
	key := "payment-" + p.ID.String()
	return checkout.Notice{EventID: event, Type: "charge.succeeded", Object: checkout.ObjectCharge, Subject: key, Amount: p.Amount,
		Result: checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}}
}

func declinedNotice(event string, p checkout.Payment) checkout.Notice {
	n := noticeOf(event, p)
	n.Type, n.Result = "charge.declined", declined
	return n
}

func (b *bundle) heed(n checkout.Notice) (checkout.Verdict, error) {
	return checkout.NewService(b.Store, nil).TakeNotice(b.ctx, n, render, render)
}

func (b *bundle) requireVerdict(want checkout.Verdict, n checkout.Notice) {
	b.t.Helper()
	verdict, err := b.heed(n)
	require.NoError(b.t, err)
	require.Equal(b.t, want, verdict)
	if want != checkout.VerdictDuplicate {
		require.Equal(b.t, string(want), value[string](b, "SELECT verdict FROM psp_events WHERE event_id = $1", n.EventID))
	}
}

// stored is a payment as it is now.
func (b *bundle) stored(c cardPayment) checkout.Payment {
	b.t.Helper()
	payment, err := b.Payment(b.ctx, b.account, c.begun.ID)
	require.NoError(b.t, err)
	return payment
}

func TestANoticeSettlesAPaymentOnce(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	payment := b.stored(c)
	b.requireVerdict(checkout.VerdictSettled, noticeOf("evt_1", payment))
	b.requirePaidOnce(p, c)
	for range 2 {
		b.requireVerdict(checkout.VerdictDuplicate, noticeOf("evt_1", payment))
	}
	b.requireVerdict(checkout.VerdictConfirmed, noticeOf("evt_2", payment))
	b.requireVerdict(checkout.VerdictDuplicate, declinedNotice("evt_2", payment))
	b.reconcile(b.impatient(p), 0)
	b.requirePaidOnce(p, c)
}

func TestANoticeOfADeclineIsTheAnswer(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{declines: "card_declined"}
	c := b.lostPayment(p, "k")
	b.requireVerdict(checkout.VerdictSettled, declinedNotice("evt_1", b.stored(c)))
	require.Equal(t, checkout.OrderPending, b.orderStatus(c.order.ID))
	calls := p.calls
	reply, err := b.payAgain(p, c)
	requireRefused(t, "payment_declined", reply, err)
	require.True(t, reply.Replayed)
	require.Equal(t, calls, p.calls)
	b.requireVerdict(checkout.VerdictConfirmed, declinedNotice("evt_2", b.stored(c)))
	b.requireBooks()
}

func TestAConflictingNoticeChangesNothing(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	cheaper := noticeOf("evt_cheaper", b.stored(c))
	cheaper.Amount.Amount--
	before := b.stored(c)
	b.requireVerdict(checkout.VerdictConflicting, cheaper)
	require.Equal(t, before, b.stored(c))

	b.reconcile(b.impatient(p), 1)
	settled := b.stored(c)
	twice := noticeOf("evt_twice", settled)
	twice.Result.ProviderID = "another charge"
	for _, n := range []checkout.Notice{declinedNotice("evt_declined", settled), twice} {
		b.requireVerdict(checkout.VerdictConflicting, n)
		require.Equal(t, settled, b.stored(c))
	}
	b.requirePaidOnce(p, c)

	order := b.order(b.customer().ID, 1)
	b.topUp(order.CustomerID, 2500)
	wallet := b.pay(order, checkout.MethodWallet)
	b.requireVerdict(checkout.VerdictConflicting, noticeOf("evt_wallet", wallet))
}

func TestANoticeOfNothingOfOursIsRecorded(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	for event, change := range map[string]func(*checkout.Notice){
		"somebody else's payment": func(n *checkout.Notice) { n.Subject = "payment-" + uuid.NewString() },
		"somebody else's refund": func(n *checkout.Notice) {
			n.Object, n.Subject = checkout.ObjectRefund, "refund-"+uuid.NewString()
		},
		"no key of ours":        func(n *checkout.Notice) { n.Subject = "order 66" },
		"no ID":                 func(n *checkout.Notice) { n.Subject = "payment-66" },
		"not a charge":          func(n *checkout.Notice) { n.Object = "payout" },
		"a refund of this name": func(n *checkout.Notice) { n.Object = checkout.ObjectRefund },
		"not about its outcome": func(n *checkout.Notice) { n.Result = checkout.GatewayResult{Outcome: checkout.OutcomeUnknown} },
		"nothing at all":        func(n *checkout.Notice) { *n = checkout.Notice{EventID: n.EventID} },
	} {
		n := noticeOf(event, b.stored(c))
		change(&n)
		b.requireVerdict(checkout.VerdictUnknown, n)
		b.requireVerdict(checkout.VerdictDuplicate, n)
	}
	require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)
	require.Equal(t, 8, b.count("psp_events"))
}

// TestANoticeComesBeforeTheAnswer settles while the handler is still waiting for
// the provider, which then answers, or not.
func TestANoticeComesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]checkout.GatewayResult{"an answer": declined, "no answer": noAnswer} {
		b, p := setup(t), &provider{}
		order := b.order(b.customer().ID, 1)
		wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
		c := cardPayment{order: order, wanted: wanted, call: b.call("k", wanted)}
		p.answers = func(int, checkout.GatewayResult) checkout.GatewayResult {
			id := value[string](b, "SELECT id::text FROM payments WHERE order_id = $1", order.ID)
			require.NoError(t, c.begun.ID.UnmarshalText([]byte(id)))
			b.requireVerdict(checkout.VerdictSettled, noticeOf("evt_1", b.stored(c)))
			return last
		}
		reply, err := b.payAgain(p, c)
		require.Equal(t, b.stored(c), decode[checkout.Payment](t, reply, err), name)
		require.True(t, reply.Replayed, name)
		b.requirePaidOnce(p, c)
	}
}

func TestNoticesRetriesAndReconcilersRace(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	for range 10 {
		c := b.lostPayment(p, newID().String())
		n := noticeOf("evt_"+c.begun.ID.String(), b.stored(c))
		verdicts := inParallel(12, func(i int) checkout.Verdict {
			switch i % 4 {
			case 0:
				_, _ = b.payAgain(p, c)
			case 1:
				_, err := b.impatient(p).RunOnce(b.ctx)
				require.NoError(t, err)
			default:
				verdict, err := b.heed(n)
				require.NoError(t, err)
				return verdict
			}
			return ""
		})
		fresh := 0
		for _, verdict := range verdicts {
			if verdict == checkout.VerdictSettled || verdict == checkout.VerdictConfirmed {
				fresh++
			}
		}
		require.Equal(t, 1, fresh, "the others are duplicates: %v", verdicts)
		b.requirePaidOnce(p, c)
	}
	require.Len(t, p.moved, 10)
}

// TestANoticeIsHeededOnceWhereverTheConnectionBreaks cuts the connection around
// the commit: the event is recorded if and only if what follows from it is done.
func TestANoticeIsHeededOnceWhereverTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	store, w := b.wired()
	service := checkout.NewService(store, nil)
	for after, want := range map[bool]checkout.Verdict{false: checkout.VerdictSettled, true: checkout.VerdictDuplicate} {
		warm := b.lostPayment(p, newID().String())
		_, err := service.TakeNotice(b.ctx, noticeOf(newID().String(), b.stored(warm)), render, render) // connected, and all is prepared
		require.NoError(t, err)
		c := b.lostPayment(p, newID().String())
		n := noticeOf(newID().String(), b.stored(c))
		w.cut(3, after) // look, lock, commit
		_, err = service.TakeNotice(b.ctx, n, render, render)
		requireUnavailable(t, err)
		verdict, err := b.heed(n)
		require.NoError(t, err)
		require.Equal(t, want, verdict)
		b.requirePaidOnce(p, c)
	}
}

// noticeOfLostRefund tells of a card refund of which the provider did not say what it did.
func (b *bundle) noticeOfLostRefund(p *provider) (checkout.Payment, checkout.Notice) {
	b.t.Helper()
	payment := b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	p.silent++
	wanted := checkout.NewRefund{PaymentID: payment.ID}
	_, err := checkout.NewService(b.Store, p).Refund(b.ctx, b.call("refund", wanted), wanted, render)
	requireCode(b.t, "refund_outcome_unknown", err)
	key := "refund-" + value[string](b, "SELECT id::text FROM refunds WHERE payment_id = $1", payment.ID)
	return payment, checkout.Notice{EventID: "evt_1", Type: "refund.succeeded", Object: checkout.ObjectRefund, Subject: key,
		Amount: payment.Amount, Result: checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}}
}

func TestANoticeSettlesARefundOnce(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	payment, n := b.noticeOfLostRefund(p)
	b.requireVerdict(checkout.VerdictSettled, n)
	require.Equal(t, checkout.OrderRefunded, b.orderStatus(payment.OrderID))
	b.requireVerdict(checkout.VerdictDuplicate, n)
	n.EventID = "evt_2"
	b.requireVerdict(checkout.VerdictConfirmed, n)
	n.EventID, n.Result = "evt_3", declined
	b.requireVerdict(checkout.VerdictConflicting, n)

	wanted := checkout.NewRefund{PaymentID: payment.ID}
	reply, err := checkout.NewService(b.Store, p).Refund(b.ctx, b.call("refund", wanted), wanted, render)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Refund](t, reply, err).Status)
	require.True(t, reply.Replayed)
	require.Equal(t, 2, b.count("ledger_transactions"))
	b.requireBooks()
}

func TestANoticeOfADeclinedRefundGivesItsAmountBack(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{declines: "charge_not_refundable"}
	payment, n := b.noticeOfLostRefund(p)
	n.Result = declined
	b.requireVerdict(checkout.VerdictSettled, n)
	require.Equal(t, checkout.OrderPaid, b.orderStatus(payment.OrderID))
	require.Zero(t, value[int64](b, "SELECT refunded FROM payments WHERE id = $1", payment.ID))
	require.Equal(t, 1, b.count("ledger_transactions"))
	b.requireBooks()
}

func TestOldNoticesAreForgottenInSmallBatches(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	payment := b.stored(c)
	for _, event := range []string{"1", "2", "3"} {
		_, err := b.heed(noticeOf(event, payment))
		require.NoError(t, err)
	}
	b.requireVerdict(checkout.VerdictConflicting, declinedNotice("conflicting", payment))
	_, err := b.pool.Exec(b.ctx, "UPDATE psp_events SET received_at = received_at - interval '91 days'")
	require.NoError(t, err)
	b.requireVerdict(checkout.VerdictConfirmed, noticeOf("recent", payment))
	purger := checkout.NewPurger(b.Store, checkout.PurgerOptions{Schedule: checkout.Schedule{Batch: 2}})
	for _, want := range []int{2, 1, 0} {
		n, err := purger.RunOnce(b.ctx)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.Equal(t, 2, b.count("psp_events WHERE event_id IN ('conflicting', 'recent')"))
	require.Equal(t, 2, b.count("psp_events"))
	b.requirePaidOnce(p, c)
}
