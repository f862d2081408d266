// Package mailer sends the mails that confirm orders and payments.
//
// A confirmation is a row that an event's consumer writes, once. The mailer takes rows that are
// due, sends each as a mail, and notes what came of it. SMTP and PostgreSQL are two systems: a
// replica that dies after the server has accepted a mail, and before it has noted that, sends the
// mail again later. So each mail is sent at least once, and all copies have the same Message-ID,
// made from the event's ID; mail servers and readers recognize copies by it (RFC 5322, section
// 3.6.4).
//
// A server that is away costs no mail an attempt: nothing is taken while nobody would accept it.
package mailer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// interval is how often a mailer looks for mails, and for a server that was away.
	interval = time.Second

	// batch is how many mails one pass takes.
	batch = 50

	// beginWithin is for how long a pass begins mails. Together with the two timeouts of a server
	// that is as slow as possible it is shorter than takenFor.
	beginWithin = 15 * time.Second

	// takenFor is after how long mails that a replica took and did not settle are sent by another
	// one: the replica has died.
	takenFor = time.Minute

	// longestPause bounds the pause after an attempt that failed because of the mail.
	longestPause = 15 * time.Minute

	// settleEvery is for how long outcomes of mails are gathered before they are noted together.
	// A replica that dies meanwhile leaves those mails to be sent again.
	settleEvery = 100 * time.Millisecond

	// giveUpAfter is how long a mail is tried that the server refuses for now (RFC 5321, section
	// 4.5.4.1: four to five days).
	giveUpAfter = 5 * 24 * time.Hour
)

// Mail confirms that an order was placed or paid.
type Mail struct {
	ID       int64     // of the confirmation
	EventID  uuid.UUID // of what it confirms
	Event    string    // its type: order.placed or payment.succeeded
	Order    uuid.UUID
	Amount   int64  // of the order, in minor units
	Currency string // ISO 4217
	Name     string // the customer's
	Address  string // the customer's
	Created  time.Time
	Attempts int // with this one
}

// Verdict is what became of an attempt to send a mail.
type Verdict string

// The verdicts. Only the first two are final.
const (
	Sent     Verdict = "sent"
	Refused  Verdict = "refused" // by the server, for good: to send it again is no use
	PutOff   Verdict = "put_off" // the server refused it for now, or its answer is unknown
	NotBegun Verdict = "not_begun"
)

// Outcome is a verdict and, unless the mail was sent, its reason, in which nothing is the
// customer's.
type Outcome struct {
	Verdict Verdict
	Reason  string
	Pause   time.Duration // until the next attempt
}

// Settled is the outcome of an attempt to send a mail.
type Settled struct {
	ID int64 // the mail's
	Outcome
}

// Store keeps the confirmations. Time is the store's.
type Store interface {
	// MailsOverdue returns for how long the earliest mail has been due, and whether one is: whether
	// TakeMails would return any.
	MailsOverdue(ctx context.Context) (overdue time.Duration, due bool, err error)

	// TakeMails returns up to limit mails that are due, the earliest first, and makes them due
	// again after taken has passed, so that no other mailer takes them before.
	TakeMails(ctx context.Context, limit int, taken time.Duration) ([]Mail, error)

	// SettleMails notes what became of mails. A mail that was sent stays sent.
	SettleMails(ctx context.Context, settled []Settled) error
}

// Mailer sends mails. Every replica runs one; it is safe for concurrent use.
type Mailer struct {
	*background.Periodic
	store  Store
	server *Server
	log    *slog.Logger

	settleEvery time.Duration

	sent, putOff, refused atomic.Int64
	overdue               atomic.Int64 // nanoseconds
}

// New makes a mailer, to be started.
func New(store Store, server *Server, schedule background.Schedule) *Mailer {
	schedule = schedule.Or(interval, batch)
	m := &Mailer{store: store, server: server, log: schedule.Log, settleEvery: settleEvery}
	m.Periodic = background.NewPeriodic("mailer", schedule, m.RunOnce)
	return m
}

// Stats counts attempts since the mailer was made, by verdict.
func (m *Mailer) Stats() map[Verdict]int64 {
	return map[Verdict]int64{Sent: m.sent.Load(), PutOff: m.putOff.Load(), Refused: m.refused.Load()}
}

// Overdue is for how long the earliest mail had been due when a pass looked last: it grows while
// the server is away.
func (m *Mailer) Overdue() time.Duration { return time.Duration(m.overdue.Load()) }

// RunOnce sends the mails that are due, up to a batch, over one connection. It returns how many
// were settled, and an error if the server is away or does not work.
func (m *Mailer) RunOnce(ctx context.Context) (settled int, err error) {
	overdue, due, err := m.store.MailsOverdue(ctx)
	if err != nil {
		return 0, err
	}
	if m.overdue.Store(int64(overdue)); !due {
		return 0, nil
	}
	session, err := m.server.dial(ctx)
	if err != nil {
		return 0, fmt.Errorf("reach the mail server: %w", err)
	}
	defer session.close()
	begun := time.Now()
	mails, err := m.store.TakeMails(ctx, batch, takenFor)
	if err != nil {
		return 0, err
	}
	noted, outcomes := begun, make([]Settled, 0, len(mails))
	for i, mail := range mails {
		outcome := Outcome{Verdict: NotBegun}
		if err == nil && ctx.Err() == nil && time.Since(begun) < beginWithin {
			outcome, err = m.send(session, mail)
			settled++
		}
		m.report(ctx, mail, outcome)
		outcomes = append(outcomes, Settled{mail.ID, outcome})
		if i < len(mails)-1 && time.Since(noted) < m.settleEvery {
			continue
		}
		// Also when the order to stop has come: what was sent should be known.
		if failed := m.store.SettleMails(context.WithoutCancel(ctx), outcomes); failed != nil {
			return settled, failed
		}
		noted, outcomes = time.Now(), outcomes[:0]
	}
	return settled, err
}

// send returns an error if the connection is of no more use.
func (m *Mailer) send(session *session, mail Mail) (Outcome, error) {
	outcome, err := session.send(mail)
	if outcome.Verdict != PutOff {
		return outcome, err
	}
	if time.Since(mail.Created) > giveUpAfter {
		outcome.Verdict = Refused
		return outcome, err
	}
	outcome.Pause = pauseAfter(mail.Attempts)
	return outcome, err
}

// pauseAfter doubles with each attempt, with jitter. So a mail that breaks the connection each time
// soon comes last, and the others do not wait for it.
func pauseAfter(attempts int) time.Duration {
	pause := min(time.Second<<min(attempts, 20), longestPause)
	return pause/2 + rand.N(pause/2)
}

// report counts and logs an outcome.
func (m *Mailer) report(ctx context.Context, mail Mail, outcome Outcome) {
	attrs := []any{"event_id", mail.EventID, "type", mail.Event, "attempts", mail.Attempts, "reason", outcome.Reason}
	switch outcome.Verdict {
	case Sent:
		m.sent.Add(1)
	case PutOff:
		m.putOff.Add(1)
		m.log.WarnContext(ctx, "mail put off", append(attrs, "retry_in", outcome.Pause)...)
	case Refused:
		m.refused.Add(1)
		m.log.ErrorContext(ctx, "mail refused", attrs...)
	case NotBegun:
	}
}
