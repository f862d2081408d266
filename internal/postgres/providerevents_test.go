package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/purge"
)

// chargeEvent is what the provider of these tests sends about a charge that it made.
func chargeEvent(event string, p checkout.Payment) checkout.ProviderEvent {
	key := "payment-" + p.ID.String()
	return checkout.ProviderEvent{ID: event, Type: "charge.succeeded", Object: checkout.ObjectCharge, Subject: key, Amount: p.Amount,
		Result: checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}}
}

func declinedEvent(event string, p checkout.Payment) checkout.ProviderEvent {
	e := chargeEvent(event, p)
	e.Type, e.Result = "charge.declined", declined
	return e
}

func (b *bundle) handle(e checkout.ProviderEvent) (checkout.Verdict, error) {
	return checkout.NewService(b.Store, nil).HandleProviderEvent(b.ctx, e, encode)
}

func (b *bundle) requireVerdict(want checkout.Verdict, e checkout.ProviderEvent) {
	b.t.Helper()
	verdict, err := b.handle(e)
	require.NoError(b.t, err)
	require.Equal(b.t, want, verdict)
	if want != checkout.VerdictDuplicate {
		require.Equal(b.t, string(want), value[string](b, "SELECT verdict FROM provider_events WHERE event_id = $1", e.ID))
	}
}

// stored is a payment as it is now.
func (b *bundle) stored(c cardPayment) checkout.Payment {
	b.t.Helper()
	payment, err := b.Payment(b.ctx, b.account, c.begun.Value.ID)
	require.NoError(b.t, err)
	return payment
}

func TestProviderEvent_SettlesAPaymentOnce(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	payment := b.stored(c)
	b.requireVerdict(checkout.VerdictSettled, chargeEvent("evt_1", payment))
	b.requirePaidOnce(p, c)
	for range 2 {
		b.requireVerdict(checkout.VerdictDuplicate, chargeEvent("evt_1", payment))
	}
	b.requireVerdict(checkout.VerdictConfirmed, chargeEvent("evt_2", payment))
	b.requireVerdict(checkout.VerdictDuplicate, declinedEvent("evt_2", payment))
	b.reconcile(b.impatient(p), 0)
	b.requirePaidOnce(p, c)
}

func TestProviderEvent_OfADeclineIsTheReply(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{declines: "card_declined"}
	c := b.lostPayment(p, "k")
	b.requireVerdict(checkout.VerdictSettled, declinedEvent("evt_1", b.stored(c)))
	require.Equal(t, checkout.OrderPending, b.orderStatus(c.order.ID))
	calls := p.calls
	answer, err := b.payAgain(p, c)
	requireRefused(t, "payment_declined", answer, err)
	require.True(t, answer.Replayed)
	require.Equal(t, calls, p.calls)
	b.requireVerdict(checkout.VerdictConfirmed, declinedEvent("evt_2", b.stored(c)))
	b.requireBooks()
}

func TestProviderEvent_ThatConflictsChangesNothing(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	cheaper := chargeEvent("evt_cheaper", b.stored(c))
	cheaper.Amount.Amount--
	before := b.stored(c)
	b.requireVerdict(checkout.VerdictConflicting, cheaper)
	require.Equal(t, before, b.stored(c))

	b.reconcile(b.impatient(p), 1)
	settled := b.stored(c)
	twice := chargeEvent("evt_twice", settled)
	twice.Result.ProviderID = "another charge"
	for _, e := range []checkout.ProviderEvent{declinedEvent("evt_declined", settled), twice} {
		b.requireVerdict(checkout.VerdictConflicting, e)
		require.Equal(t, settled, b.stored(c))
	}
	b.requirePaidOnce(p, c)

	order := b.order(b.customer().ID, 1)
	b.topUp(order.CustomerID, 2500)
	wallet := b.pay(order, checkout.MethodWallet)
	b.requireVerdict(checkout.VerdictConflicting, chargeEvent("evt_wallet", wallet))
}

func TestProviderEvent_OfSomethingElseIsRecorded(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	for event, change := range map[string]func(*checkout.ProviderEvent){
		"another account's payment": func(e *checkout.ProviderEvent) { e.Subject = "payment-" + uuid.NewString() },
		"another account's refund": func(e *checkout.ProviderEvent) {
			e.Object, e.Subject = checkout.ObjectRefund, "refund-"+uuid.NewString()
		},
		"no key of ours":        func(e *checkout.ProviderEvent) { e.Subject = "order 66" },
		"no ID":                 func(e *checkout.ProviderEvent) { e.Subject = "payment-66" },
		"not a charge":          func(e *checkout.ProviderEvent) { e.Object = "payout" },
		"a refund of this name": func(e *checkout.ProviderEvent) { e.Object = checkout.ObjectRefund },
		"not about its outcome": func(e *checkout.ProviderEvent) { e.Result = checkout.GatewayResult{Outcome: checkout.OutcomeUnknown} },
		"nothing at all":        func(e *checkout.ProviderEvent) { *e = checkout.ProviderEvent{ID: e.ID} },
	} {
		e := chargeEvent(event, b.stored(c))
		change(&e)
		b.requireVerdict(checkout.VerdictUnknown, e)
		b.requireVerdict(checkout.VerdictDuplicate, e)
	}
	require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)
	require.Equal(t, 8, b.count("provider_events"))
}

// TestProviderEvent_MayArriveBeforeTheAnswer settles while the handler is still waiting for the
// provider, which then answers, or not.
func TestProviderEvent_MayArriveBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]checkout.GatewayResult{"an answer": declined, "no answer": noAnswer} {
		b, p := setup(t), &provider{}
		order := b.order(b.customer().ID, 1)
		wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
		c := cardPayment{order: order, wanted: wanted, call: b.call("k", wanted)}
		p.answers = func(int, checkout.GatewayResult) checkout.GatewayResult {
			id := value[string](b, "SELECT id::text FROM payments WHERE order_id = $1", order.ID)
			require.NoError(t, c.begun.Value.ID.UnmarshalText([]byte(id)))
			b.requireVerdict(checkout.VerdictSettled, chargeEvent("evt_1", b.stored(c)))
			return last
		}
		answer, err := b.payAgain(p, c)
		require.Equal(t, b.stored(c), decode[checkout.Payment](t, answer, err), name)
		require.True(t, answer.Replayed, name)
		b.requirePaidOnce(p, c)
	}
}

func TestProviderEvent_RacesWithRetriesAndReconcilers(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	for range 10 {
		c := b.lostPayment(p, newID().String())
		e := chargeEvent("evt_"+c.begun.Value.ID.String(), b.stored(c))
		verdicts := inParallel(12, func(i int) checkout.Verdict {
			switch i % 4 {
			case 0:
				_, _ = b.payAgain(p, c)
			case 1:
				_, err := b.impatient(p).RunOnce(b.ctx)
				require.NoError(t, err)
			default:
				verdict, err := b.handle(e)
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

// TestProviderEvent_IsHandledOnceWhereverTheConnectionBreaks cuts the connection around the commit:
// the event is recorded if and only if what follows from it is done.
func TestProviderEvent_IsHandledOnceWhereverTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	store, w := b.wired()
	service := checkout.NewService(store, nil)
	for after, want := range map[bool]checkout.Verdict{false: checkout.VerdictSettled, true: checkout.VerdictDuplicate} {
		warm := b.lostPayment(p, newID().String())
		_, err := service.HandleProviderEvent(b.ctx, chargeEvent(newID().String(), b.stored(warm)), encode) // connected, and all is prepared
		require.NoError(t, err)
		c := b.lostPayment(p, newID().String())
		e := chargeEvent(newID().String(), b.stored(c))
		w.cut(3, after) // look, lock, commit
		_, err = service.HandleProviderEvent(b.ctx, e, encode)
		requireUnavailable(t, err)
		verdict, err := b.handle(e)
		require.NoError(t, err)
		require.Equal(t, want, verdict)
		b.requirePaidOnce(p, c)
	}
}

// eventOfLostRefund is about a card refund that the provider did not answer.
func (b *bundle) eventOfLostRefund(p *provider) (checkout.Payment, checkout.ProviderEvent) {
	b.t.Helper()
	payment := b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	p.silent++
	wanted := checkout.NewRefund{PaymentID: payment.ID}
	_, err := checkout.NewService(b.Store, p).Refund(b.ctx, b.call("refund", wanted), wanted)
	requireCode(b.t, "refund_outcome_unknown", err)
	key := "refund-" + value[string](b, "SELECT id::text FROM refunds WHERE payment_id = $1", payment.ID)
	return payment, checkout.ProviderEvent{ID: "evt_1", Type: "refund.succeeded", Object: checkout.ObjectRefund, Subject: key,
		Amount: payment.Amount, Result: checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "at-" + key}}
}

func TestProviderEvent_SettlesARefundOnce(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	payment, e := b.eventOfLostRefund(p)
	b.requireVerdict(checkout.VerdictSettled, e)
	require.Equal(t, checkout.OrderRefunded, b.orderStatus(payment.OrderID))
	b.requireVerdict(checkout.VerdictDuplicate, e)
	e.ID = "evt_2"
	b.requireVerdict(checkout.VerdictConfirmed, e)
	e.ID, e.Result = "evt_3", declined
	b.requireVerdict(checkout.VerdictConflicting, e)

	wanted := checkout.NewRefund{PaymentID: payment.ID}
	answer, err := checkout.NewService(b.Store, p).Refund(b.ctx, b.call("refund", wanted), wanted)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Refund](t, answer, err).Status)
	require.True(t, answer.Replayed)
	require.Equal(t, 2, b.count("ledger_transactions"))
	b.requireBooks()
}

func TestProviderEvent_OfADeclinedRefundReleasesItsAmount(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{declines: "charge_not_refundable"}
	payment, e := b.eventOfLostRefund(p)
	e.Result = declined
	b.requireVerdict(checkout.VerdictSettled, e)
	require.Equal(t, checkout.OrderPaid, b.orderStatus(payment.OrderID))
	require.Zero(t, value[int64](b, "SELECT refunded FROM payments WHERE id = $1", payment.ID))
	require.Equal(t, 1, b.count("ledger_transactions"))
	b.requireBooks()
}

func TestPurger_DeletesOldProviderEventsInSmallBatches(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	payment := b.stored(c)
	for _, event := range []string{"1", "2", "3"} {
		_, err := b.handle(chargeEvent(event, payment))
		require.NoError(t, err)
	}
	b.requireVerdict(checkout.VerdictConflicting, declinedEvent("conflicting", payment))
	_, err := b.pool.Exec(b.ctx, "UPDATE provider_events SET received_at = received_at - interval '91 days'")
	require.NoError(t, err)
	b.requireVerdict(checkout.VerdictConfirmed, chargeEvent("recent", payment))
	purger := purge.New(b.Store, purge.Options{Schedule: background.Schedule{Batch: 2}})
	for _, want := range []int{2, 1, 0} {
		n, err := purger.RunOnce(b.ctx)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.Equal(t, 2, b.count("provider_events WHERE event_id IN ('conflicting', 'recent')"))
	require.Equal(t, 2, b.count("provider_events"))
	b.requirePaidOnce(p, c)
}
