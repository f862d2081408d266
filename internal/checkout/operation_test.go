package checkout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOperation_IsSettledOnce(t *testing.T) {
	t.Parallel()
	for status, may := range map[Status]bool{StatusProcessing: true, StatusSucceeded: false, StatusDeclined: false} {
		locked := in(charging.Operation, func(o *Operation) { o.Status = status })
		require.Equal(t, may, locked.MaySettle(), status)
	}
}

func TestOperation_MatchesAnEvent(t *testing.T) {
	t.Parallel()
	other := GatewayResult{Outcome: OutcomeApproved, ProviderID: "another"}
	for _, c := range []struct {
		status Status
		amount int64
		result GatewayResult
		want   Verdict
	}{
		{StatusProcessing, 4900, approved, VerdictSettled},
		{StatusProcessing, 4900, declined, VerdictSettled},
		{StatusProcessing, 4899, approved, VerdictConflicting},
		{StatusProcessing, 4900, other, VerdictConflicting},
		{StatusSucceeded, 4900, approved, VerdictConfirmed},
		{StatusSucceeded, 4899, approved, VerdictConflicting},
		{StatusSucceeded, 4900, other, VerdictConflicting},
		{StatusSucceeded, 4900, declined, VerdictConflicting},
		{StatusDeclined, 4900, declined, VerdictConfirmed},
		{StatusDeclined, 4900, approved, VerdictConflicting},
	} {
		locked := in(charging.Operation, func(o *Operation) { o.Status, o.ProviderID = c.status, "at-provider" })
		require.Equal(t, c.want, locked.Match(ProviderEvent{Amount: usd(c.amount), Result: c.result}), "%v", c)
	}
	unnamed := in(charging.Operation, func(o *Operation) { o.ProviderID = "" })
	require.Equal(t, VerdictSettled, unnamed.Match(ProviderEvent{Amount: usd(4900), Result: other}))
}

// TestOperation_KeepsItsIDAtTheProvider: a decline need not repeat it.
func TestOperation_KeepsItsIDAtTheProvider(t *testing.T) {
	t.Parallel()
	known := in(charging.Operation, func(o *Operation) { o.ProviderID = "at-provider" })
	require.Equal(t, "at-provider", known.settled(declined, time.Now()).ProviderID)
	unknown := in(charging.Operation, func(o *Operation) { o.ProviderID = "" })
	require.Equal(t, approved.ProviderID, unknown.settled(approved, time.Now()).ProviderID)
	require.Empty(t, unknown.settled(declined, time.Now()).ProviderID)
}

// taken is an attempt at an operation.
func taken[T any](attempt int32, value T) Taken[T] {
	return Taken[T]{Call: Call{Claim: &Claim{Attempt: attempt}}, Value: value}
}

// TestSend_OnlyLooksUpWhatTheProviderHas: under the key it would repeat its first answer for a day,
// such as that it is still at work.
func TestSend_OnlyLooksUpWhatTheProviderHas(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, maxBlindAge + 1, maxSendAge + 1, minAbsentAge + 1} {
		for listed, want := range map[Outcome]Outcome{OutcomeApproved: OutcomeApproved, OutcomeDeclined: OutcomeDeclined,
			OutcomeUnknown: OutcomeUnknown, OutcomeAbsent: OutcomeUnknown} {
			now := time.Now()
			known := func(o *Operation) {
				o.ProviderID, o.CreatedAt, o.UpdatedAt = "at-provider", now.Add(-age), now
			}
			g := &scripted{asked: approved, listed: GatewayResult{Outcome: listed}}
			require.Equal(t, want, cardPayments(nil, g).send(t.Context(), taken(2, in(charging, func(p *Payment) { known(&p.Operation) }))).Outcome)
			require.Equal(t, want, cardRefunds(nil, g).send(t.Context(), taken(2, in(refunding, func(r *Refund) { known(&r.Operation) }))).Outcome)
			require.Equal(t, "look up, look up", g.calls)
			require.Equal(t, []string{"at-provider", "at-provider"}, []string{g.charge.ProviderID, g.refund.ProviderID})
		}
	}
}

// TestSend_DoesNotTakeAnAbsentOperationForDeclinedTooSoon: only the first attempt knows that no
// other request is under way, and one that is too old to be sent that none will arrive.
func TestSend_DoesNotTakeAnAbsentOperationForDeclinedTooSoon(t *testing.T) {
	t.Parallel()
	absent := GatewayResult{Outcome: OutcomeAbsent, DeclineCode: "invalid_token"}
	for _, c := range []struct {
		attempt       int32
		age           time.Duration
		asked, listed GatewayResult
		want          Outcome
		calls         string
	}{
		{1, 0, approved, absent, OutcomeApproved, "ask"},
		{1, 0, absent, approved, OutcomeDeclined, "ask"},
		{2, maxBlindAge, approved, absent, OutcomeApproved, "ask"},
		{2, maxBlindAge, absent, approved, OutcomeApproved, "ask, look up"},
		{2, maxBlindAge, absent, absent, OutcomeUnknown, "ask, look up"},
		{2, maxBlindAge + 1, declined, approved, OutcomeApproved, "look up"},
		{2, maxBlindAge + 1, declined, noAnswer, OutcomeUnknown, "look up"},
		{2, maxSendAge, approved, absent, OutcomeApproved, "look up, ask"},
		{2, maxSendAge + 1, approved, absent, OutcomeUnknown, "look up"},
		{2, minAbsentAge, approved, absent, OutcomeUnknown, "look up"},
		{2, minAbsentAge + 1, approved, absent, OutcomeDeclined, "look up"},
		{1, minAbsentAge + 1, declined, approved, OutcomeApproved, "look up"},
	} {
		now := time.Now()
		payment := in(charging, func(p *Payment) { p.CreatedAt, p.UpdatedAt = now.Add(-c.age), now })
		refund := in(refunding, func(r *Refund) { r.CreatedAt, r.UpdatedAt = now.Add(-c.age), now })
		g := &scripted{asked: c.asked, listed: c.listed}
		require.Equal(t, c.want, cardPayments(nil, g).send(t.Context(), taken(c.attempt, payment)).Outcome, "%v", c)
		require.Equal(t, c.calls, g.calls)
		g.calls = ""
		require.Equal(t, c.want, cardRefunds(nil, g).send(t.Context(), taken(c.attempt, refund)).Outcome, "%v", c)
		require.Equal(t, c.calls, g.calls)
		require.Equal(t, []string{"payment-" + oldID.String(), "refund-" + oldID.String()}, []string{g.charge.IdempotencyKey, g.refund.IdempotencyKey})
	}
}

// TestSend_AsksNothingWhileTheAgeIsNotKnown: a store whose clock has jumped makes a new payment
// look a day old, or an old one new.
func TestSend_AsksNothingWhileTheAgeIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{MaxRequestAge + time.Minute, -MaxRequestAge - time.Minute, 25 * time.Hour} {
		attempted := time.Now().Add(off)
		payment := in(charging, func(p *Payment) { p.CreatedAt, p.UpdatedAt = begun, attempted })
		g := &scripted{asked: approved, listed: approved}
		require.Equal(t, OutcomeUnknown, cardPayments(nil, g).send(t.Context(), taken(2, payment)).Outcome, "%s", off)
		require.Empty(t, g.calls)
	}
}
