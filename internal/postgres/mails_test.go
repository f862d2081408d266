package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/mailer"
	"github.com/oncepay/oncepay/internal/outbox"
)

// confirmed is an order of Ada's whose confirmation was written.
func (b *bundle) confirmed(byMail bool) (event uuid.UUID) {
	b.t.Helper()
	order := b.order(b.customer().ID, 1)
	var placed outbox.Event
	require.NoError(b.t, b.pool.QueryRow(b.ctx, "SELECT id, event_id FROM outbox WHERE subject = $1 AND type = 'order.placed'", order.ID).
		Scan(&placed.Position, &placed.ID))
	n, err := NewInbox(b.pool, byMail).Subscriptions()[0].Handle(b.ctx, []outbox.Event{placed})
	require.NoError(b.t, err)
	require.Equal(b.t, 1, n)
	return placed.ID
}

func TestMails_AreTakenByOneMailerAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.confirmed(true), b.confirmed(true)
	mails := NewMails(b.pool)
	take := func(limit int) (events []uuid.UUID) {
		taken, err := mails.TakeMails(b.ctx, limit, time.Minute)
		require.NoError(t, err)
		for _, mail := range taken {
			require.Equal(t, "order.placed", mail.Event)
			require.NotEmpty(t, mail.Address)
			require.NotEmpty(t, mail.Name)
			require.Positive(t, mail.Amount)
			events = append(events, mail.EventID)
		}
		return events
	}
	require.Equal(t, []uuid.UUID{first}, take(1))
	require.Equal(t, []uuid.UUID{second}, take(9))
	require.Empty(t, take(9))
	overdue, due, err := mails.MailsOverdue(b.ctx)
	require.NoError(t, err)
	require.False(t, due)
	require.Zero(t, overdue)

	_, err = b.pool.Exec(b.ctx, "UPDATE order_confirmations SET due_at = now() - interval '1 hour'") // the mailer that took them has died
	require.NoError(t, err)
	overdue, due, err = mails.MailsOverdue(b.ctx)
	require.NoError(t, err)
	require.True(t, due)
	require.InDelta(t, time.Hour, overdue, float64(10*time.Minute))
	require.Len(t, take(9), 2)
}

func TestMails_EndWithAFinalVerdict(t *testing.T) {
	t.Parallel()
	type state struct {
		sent, due bool
		attempts  int
	}
	want := map[mailer.Verdict]state{
		mailer.Sent: {sent: true, attempts: 1}, mailer.Refused: {attempts: 1}, mailer.PutOff: {due: true, attempts: 1}, mailer.NotBegun: {due: true},
	}
	b := setup(t)
	for range want {
		b.confirmed(true)
	}
	mails := NewMails(b.pool)
	taken, err := mails.TakeMails(b.ctx, 9, time.Minute)
	require.NoError(t, err)
	require.Len(t, taken, len(want))
	var settled []mailer.Settled
	for verdict := range want {
		settled = append(settled, mailer.Settled{ID: taken[len(settled)].ID, Outcome: mailer.Outcome{Verdict: verdict, Reason: string(verdict)}})
	}
	states := func() map[mailer.Verdict]state {
		rows, err := b.pool.Query(b.ctx, "SELECT last_error, sent_at IS NOT NULL, coalesce(due_at <= now(), false), attempts FROM order_confirmations")
		require.NoError(t, err)
		found := map[mailer.Verdict]state{}
		var s state
		var verdict string
		_, err = pgx.ForEachRow(rows, []any{&verdict, &s.sent, &s.due, &s.attempts}, func() error {
			found[mailer.Verdict(verdict)] = s
			return nil
		})
		require.NoError(t, err)
		return found
	}
	require.NoError(t, mails.SettleMails(b.ctx, settled))
	require.Equal(t, want, states())

	// A second mailer that has taken them meanwhile knows less.
	for i := range settled {
		settled[i].Verdict = mailer.PutOff
	}
	require.NoError(t, mails.SettleMails(b.ctx, settled))
	for verdict, s := range states() {
		require.Equal(t, want[verdict].sent, s.sent, verdict)
		require.Equal(t, !s.sent, s.due, verdict)
	}
}

// TestMails_OfAServiceWithoutAServerAreNeverSent, also if it gets one later.
func TestMails_OfAServiceWithoutAServerAreNeverSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.confirmed(false)
	taken, err := NewMails(b.pool).TakeMails(b.ctx, 9, time.Minute)
	require.NoError(t, err)
	require.Empty(t, taken)
	require.Equal(t, 1, b.count("order_confirmations"))
}
