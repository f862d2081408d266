package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
)

// noGrace makes everything that is processing due, as if its handler were gone.
const noGrace = time.Nanosecond

// unknownPause is what clients are given to come back for an unknown outcome.
const unknownPause = 4 * time.Second

func (b *bundle) reconciler(p *provider, options checkout.ReconcilerOptions) *checkout.Reconciler {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return checkout.NewReconciler(b.Store, p, encode, options)
}

// impatient is a reconciler without grace.
func (b *bundle) impatient(p *provider) *checkout.Reconciler {
	return b.reconciler(p, checkout.ReconcilerOptions{Grace: noGrace})
}

// reconcile runs one pass and checks how many it settled.
func (b *bundle) reconcile(r *checkout.Reconciler, settled int) {
	b.t.Helper()
	n, err := r.RunOnce(b.ctx)
	require.NoError(b.t, err)
	require.Equal(b.t, settled, n)
}

// lostPayment is a card payment of which the provider did not say what it did, and whose client did
// not come back at once.
func (b *bundle) lostPayment(p *provider, key string) cardPayment {
	b.t.Helper()
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	c := cardPayment{order: order, wanted: wanted, call: b.call(key, wanted)}
	p.silent++
	_, err := b.payAgain(p, c)
	requireCode(b.t, "payment_outcome_unknown", err)
	id := value[string](b, "SELECT id::text FROM payments WHERE order_id = $1", order.ID)
	require.NoError(b.t, c.begun.Value.ID.UnmarshalText([]byte(id)))
	b.age("payments", unknownPause)
	return c
}

// payAgain is the client's request, for the first time or once more.
func (b *bundle) payAgain(p *provider, c cardPayment) (checkout.Answer, error) {
	return checkout.NewService(b.Store, p).PayOrder(b.ctx, c.call, c.wanted)
}

// requirePaidOnce checks all effects of a payment, and the answer under its key.
func (b *bundle) requirePaidOnce(p *provider, c cardPayment) {
	b.t.Helper()
	payment, err := b.Payment(b.ctx, b.account, c.begun.Value.ID)
	require.NoError(b.t, err)
	require.Equal(b.t, checkout.StatusSucceeded, payment.Status)
	require.Equal(b.t, checkout.OrderPaid, b.orderStatus(c.order.ID))
	require.Equal(b.t, 1, b.count("ledger_transactions WHERE subject = $1", payment.ID))
	require.Equal(b.t, []string{"order.placed", "payment.succeeded"}, b.events(c.order.ID))
	require.Contains(b.t, p.moved, "payment-"+payment.ID.String())
	b.requireBooks()

	calls := p.calls
	answer, err := b.payAgain(p, c)
	require.Equal(b.t, payment, decode[checkout.Payment](b.t, answer, err), "as a handler would have answered")
	require.True(b.t, answer.Replayed)
	require.Equal(b.t, "application/json", contentOf(answer).Header["Content-Type"])
	require.Equal(b.t, calls, p.calls)
}

func TestReconciler_SettlesAPaymentWhoseClientIsGone(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	require.Equal(t, checkout.OrderPaying, b.orderStatus(c.order.ID))
	r := b.impatient(p)
	b.reconcile(r, 1)
	b.reconcile(r, 0)
	require.Equal(t, 2, p.calls)
	require.Len(t, p.moved, 1, "the same charge was asked for")
	b.requirePaidOnce(p, c)
}

func TestCountPayments_IsByState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	counts := func() map[checkout.Status]int {
		counts, err := b.CountPayments(b.ctx, time.Hour)
		require.NoError(t, err)
		return counts
	}
	require.Equal(t, map[checkout.Status]int{checkout.StatusProcessing: 0, checkout.StatusSucceeded: 0, checkout.StatusDeclined: 0}, counts())
	b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	c := b.beginCardPayment("k")
	require.Equal(t, map[checkout.Status]int{checkout.StatusProcessing: 1, checkout.StatusSucceeded: 2, checkout.StatusDeclined: 0}, counts())

	_, err := b.pool.Exec(b.ctx, "UPDATE payments SET created_at = created_at - interval '2 hours'")
	require.NoError(t, err)
	require.Equal(t, map[checkout.Status]int{checkout.StatusProcessing: 1, checkout.StatusSucceeded: 0, checkout.StatusDeclined: 0}, counts(),
		"what is settled is counted for an hour")
	_, err = b.CardPayments().Settle(b.ctx, c.begun, checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, DeclineCode: "x"})
	require.NoError(t, err)
	_, err = b.pool.Exec(b.ctx, "UPDATE payments SET created_at = now() WHERE status = 'declined'")
	require.NoError(t, err)
	require.Equal(t, map[checkout.Status]int{checkout.StatusProcessing: 0, checkout.StatusSucceeded: 0, checkout.StatusDeclined: 1}, counts())
}

// TestReconciler_AsksSoonForAnUnknownOutcome has a handler say that it doesn't know. The grace is
// for those that say nothing.
func TestReconciler_AsksSoonForAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{silent: 2}
	c := b.beginCardPayment("k")
	r := b.reconciler(p, checkout.ReconcilerOptions{})
	_, err := b.payAgain(p, c)
	requireCode(t, "payment_outcome_unknown", err)
	b.reconcile(r, 0)
	b.age("payments", time.Second)
	b.reconcile(r, 0)
	_, err = b.payAgain(p, c) // the client retries after Retry-After
	requireCode(t, "payment_outcome_unknown", err)
	b.age("payments", time.Second)
	b.reconcile(r, 0)
	require.Equal(t, 2, p.calls)
	b.age("payments", unknownPause)
	b.reconcile(r, 1)
	b.requirePaidOnce(p, c)
}

func TestReconciler_LeavesALiveHandlerItsGrace(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.beginCardPayment("k")
	r := b.reconciler(p, checkout.ReconcilerOptions{})
	b.reconcile(r, 0)
	require.Zero(t, p.calls)
	b.age("payments", checkout.DefaultGrace-5*time.Second)
	b.reconcile(r, 0)
	b.age("payments", 10*time.Second)
	b.reconcile(r, 1)
	b.requirePaidOnce(p, c)
}

// age makes time pass for what is processing.
func (b *bundle) age(table string, by time.Duration) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, "UPDATE "+table+" SET created_at = created_at - $1::interval, updated_at = updated_at - $1::interval "+
		"WHERE status = 'processing'", by)
	require.NoError(b.t, err)
	_, err = b.pool.Exec(b.ctx, "UPDATE idempotency_keys k SET created_at = k.created_at - $1::interval, taken_at = taken_at - $1::interval, "+
		"due_at = due_at - $1::interval FROM "+table+" o WHERE k.resource_id = o.id AND k.status = 'in_progress'", by)
	require.NoError(b.t, err)
}

// TestFence_HoldsBetweenRetriesAndReconcilers lets clients and reconcilers fence each other for as
// long as they like.
func TestReconciler_SharesTheWork(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	var lost []cardPayment
	for range 12 {
		lost = append(lost, b.lostPayment(p, newID().String()))
	}
	b.age("payments", 30*time.Minute)
	options := checkout.ReconcilerOptions{Grace: time.Minute, Schedule: background.Schedule{Batch: 3}}
	settled := inParallel(5, func(int) int {
		n, err := b.reconciler(p, options).RunOnce(b.ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 3)
		return n
	})
	for n := 1; n > 0; settled = append(settled, n) {
		var err error
		n, err = b.reconciler(p, options).RunOnce(b.ctx)
		require.NoError(t, err)
	}
	total := 0
	for _, n := range settled {
		total += n
	}
	require.Equal(t, 12, total)
	require.Equal(t, 12+12, p.calls, "no replica asked for what another had taken")
	require.Equal(t, 12, b.count("idempotency_keys WHERE attempt = 2"))
	for _, c := range lost {
		b.requirePaidOnce(p, c)
	}
}

func TestReconciler_SkipsLockedPayments(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	locked, free := b.lostPayment(p, "locked"), b.lostPayment(p, "free")
	release := b.hold("SELECT FROM payments WHERE id = $1 FOR UPDATE", locked.begun.Value.ID)
	r := b.impatient(p)
	b.reconcile(r, 1)
	b.requirePaidOnce(p, free)
	release()
	b.reconcile(r, 1)
	b.requirePaidOnce(p, locked)
}

// hold keeps what a statement locks until it is released.
func (b *bundle) hold(sql string, args ...any) (release func()) {
	b.t.Helper()
	tx, err := b.pool.Begin(b.ctx)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // in case the test fails before
	_, err = tx.Exec(b.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	require.NoError(b.t, err)
	_, err = tx.Exec(b.ctx, sql, args...)
	require.NoError(b.t, err)
	return func() { require.NoError(b.t, tx.Rollback(b.ctx)) }
}

func TestReconciler_SettlesALateDecline(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{declines: "card_declined"}
	c := b.lostPayment(p, "k")
	b.reconcile(b.impatient(p), 1)
	require.Empty(t, p.moved)
	require.Equal(t, checkout.OrderPending, b.orderStatus(c.order.ID))
	require.Equal(t, []string{"order.placed", "payment.declined"}, b.events(c.order.ID))
	require.Zero(t, b.count("ledger_transactions"))
	answer, err := b.payAgain(p, c)
	requireRefused(t, "payment_declined", answer, err)
	require.True(t, answer.Replayed)
	b.requireBooks()
}

func TestReconciler_KeepsAnUnknownOutcomeProcessingAndBacksOff(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{silent: 1000}
	c := b.lostPayment(p, "k")
	log := new(bytes.Buffer)
	options := checkout.ReconcilerOptions{Grace: noGrace, Backoff: 10 * time.Minute, MaxBackoff: 10 * time.Minute, Deadline: 45 * time.Minute,
		Schedule: background.Schedule{Log: slog.New(slog.NewTextHandler(log, nil))}}
	r := b.reconciler(p, options)
	for attempt := 2; attempt < 6; attempt++ {
		b.reconcile(r, 0)
		require.Equal(t, attempt, p.calls)
		b.reconcile(r, 0)
		require.Equal(t, attempt, p.calls, "it is not asked again at once")
		require.EqualValues(t, attempt, value[int32](b, "SELECT attempt FROM idempotency_keys WHERE status = 'in_progress'"))
		require.True(t, value[bool](b, "SELECT due_at BETWEEN taken_at AND taken_at + interval '10 minutes' FROM idempotency_keys WHERE status = 'in_progress'"))
		b.age("payments", 10*time.Minute)
	}
	require.Contains(t, log.String(), "outcome still unknown")
	require.NotContains(t, log.String(), "level=ERROR")
	b.age("payments", 12*time.Minute)
	b.reconcile(r, 0)
	require.Contains(t, log.String(), "level=ERROR")
	stats, err := r.Stats(b.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, stats.Processing)
	require.Equal(t, 1, stats.Overdue)
	require.InDelta(t, 52*time.Minute, stats.Oldest, float64(time.Minute))
	require.EqualValues(t, 5, stats.Unknown)

	p.silent = 0
	b.age("payments", 10*time.Minute)
	b.reconcile(r, 1)
	require.Len(t, p.moved, 1)
	b.requirePaidOnce(p, c)
	stats, err = r.Stats(b.ctx)
	require.NoError(t, err)
	require.Equal(t, checkout.ReconcilerStats{Settled: 1, Unknown: 5}, stats)
}

func TestReconciler_WorksInTheBackground(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	var lost []cardPayment
	for range 10 {
		lost = append(lost, b.lostPayment(p, newID().String()))
	}
	options := checkout.ReconcilerOptions{Grace: noGrace, Schedule: background.Schedule{Interval: 5 * time.Millisecond, Batch: 2}}
	one, other := b.reconciler(p, options), b.reconciler(p, options)
	one.Start(b.ctx)
	defer one.Stop()
	other.Start(b.ctx)
	defer other.Stop()
	require.Eventually(t, func() bool { return b.count("payments WHERE status = 'processing'") == 0 }, testTimeout, 10*time.Millisecond)
	one.Stop()
	other.Stop()
	for _, c := range lost {
		b.requirePaidOnce(p, c)
	}
	require.Len(t, p.moved, 10)
}

func TestReply_OfALateSettlementIsKeptForItsTTL(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k") // its answer is kept for an hour
	_, err := b.pool.Exec(b.ctx, "UPDATE idempotency_keys SET created_at = created_at - interval '3 days', expires_at = expires_at - interval '3 days'")
	require.NoError(t, err)
	b.reconcile(b.impatient(p), 1)
	require.InDelta(t, 3600, value[float64](b, "SELECT extract(epoch FROM expires_at - now())::float8 FROM idempotency_keys"), 60)
	purged, err := b.PurgeKeys(b.ctx, 10)
	require.NoError(t, err)
	require.Zero(t, purged)
	b.requirePaidOnce(p, c)
}

func TestReconciler_SettlesALostRefundOnce(t *testing.T) {
	t.Parallel()
	for _, declines := range []string{"", "charge_not_refundable"} {
		b, p := setup(t), &provider{declines: declines}
		order := b.order(b.customer().ID, 1)
		payment := b.pay(order, checkout.MethodCard)
		wanted := refundWanted(payment.ID, 1500)
		call, service := b.call("r", wanted), checkout.NewService(b.Store, p)
		p.silent = 2
		_, err := service.Refund(b.ctx, call, wanted)
		requireCode(t, "refund_outcome_unknown", err)
		b.age("refunds", unknownPause)
		r := b.reconciler(p, checkout.ReconcilerOptions{Backoff: 20 * time.Minute, MaxBackoff: 20 * time.Minute})
		b.reconcile(r, 0)
		b.reconcile(r, 0)
		require.Equal(t, 2, p.calls)
		require.EqualValues(t, 1500, b.refunded(payment.ID), "still reserved")
		b.age("refunds", 30*time.Minute)
		b.reconcile(r, 1)
		require.EqualValues(t, 3, value[int32](b, "SELECT k.attempt FROM idempotency_keys k JOIN refunds r ON r.id = k.resource_id"))

		answer, err := service.Refund(b.ctx, call, wanted)
		require.NoError(t, err)
		require.True(t, answer.Replayed)
		require.Equal(t, 3, p.calls)
		b.requireBooks()
		if declines != "" {
			requireRefused(t, "refund_declined", answer, err)
			require.Zero(t, b.refunded(payment.ID))
			require.Equal(t, checkout.OrderPaid, b.orderStatus(order.ID))
			continue
		}
		require.Equal(t, checkout.StatusSucceeded, decode[checkout.Refund](t, answer, err).Status)
		require.Len(t, p.moved, 1)
		require.Equal(t, []string{"order.placed", "payment.succeeded", "refund.succeeded"}, b.events(order.ID))
		require.Equal(t, checkout.OrderPartiallyRefunded, b.orderStatus(order.ID))
	}
}

func TestReconciler_SkipsLockedRefunds(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	payment := b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	locked := b.beginCardRefund("1", refundWanted(payment.ID, 1000))
	b.beginCardRefund("2", refundWanted(payment.ID, 1500))
	release := b.hold("SELECT FROM refunds WHERE id = $1 FOR UPDATE", locked.Value.ID)
	r := b.impatient(p)
	b.reconcile(r, 1)
	release()
	b.reconcile(r, 1)
	b.requireBooks()
}

func TestReconciler_ReportsThatItsDatabaseIsAway(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	b.lostPayment(p, "k")
	b.pool.Close()
	r := b.impatient(p)
	n, err := r.RunOnce(b.ctx)
	require.Zero(t, n)
	requireUnavailable(t, err)
	_, err = r.Stats(b.ctx)
	requireUnavailable(t, err)
}
