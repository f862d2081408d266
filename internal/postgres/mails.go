package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/mailer"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Mails are the confirmations that are sent as mails. Safe for concurrent use.
type Mails struct {
	store *Store
}

var _ mailer.Store = (*Mails)(nil)

// NewMails makes them of a pool, which remains the caller's to close.
func NewMails(pool *pgxpool.Pool) *Mails { return &Mails{store: NewStore(pool, Options{})} }

// MailsOverdue implements [mailer.Store].
func (m *Mails) MailsOverdue(ctx context.Context) (overdue time.Duration, due bool, err error) {
	since, err := read(ctx, m.store, func(ctx context.Context, q *dbsqlc.Queries) (float64, error) { return q.MailsOverdue(ctx) })
	return max(0, seconds(since)), since >= 0 && err == nil, translate("look for mails", err)
}

// TakeMails implements [mailer.Store].
func (m *Mails) TakeMails(ctx context.Context, limit int, taken time.Duration) ([]mailer.Mail, error) {
	rows, err := write(ctx, m.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.TakeMailsRow, error) {
		return q.TakeMails(ctx, dbsqlc.TakeMailsParams{TakenSeconds: taken.Seconds(), BatchSize: int32(limit)})
	})
	if err != nil {
		return nil, translate("take mails", err)
	}
	mails := make([]mailer.Mail, len(rows))
	for i, row := range rows {
		mails[i] = mailer.Mail{ID: row.ID, EventID: row.EventID, Event: row.Type, Order: row.OrderID, Amount: row.TotalAmount,
			Currency: row.TotalCurrency, Name: row.Name, Address: row.Email, Created: row.CreatedAt, Attempts: int(row.Attempts)}
	}
	return mails, nil
}

// SettleMail implements [mailer.Store].
func (m *Mails) SettleMail(ctx context.Context, id int64, outcome mailer.Outcome) error {
	var pause *float64
	if outcome.Verdict == mailer.PutOff || outcome.Verdict == mailer.NotBegun {
		pause = new(outcome.Pause.Seconds())
	}
	_, err := write(ctx, m.store, func(ctx context.Context, q *dbsqlc.Queries) (struct{}, error) {
		return struct{}{}, q.SettleMail(ctx, dbsqlc.SettleMailParams{ID: id, Sent: outcome.Verdict == mailer.Sent,
			Begun: outcome.Verdict != mailer.NotBegun, PauseSeconds: pause, Reason: outcome.Reason})
	})
	return translate("note what became of a mail", err)
}
