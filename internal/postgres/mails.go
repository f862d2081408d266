package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/mailer"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Mails are the confirmations that are sent as mails. Two senders never take the same one at a time
// (TakeMails). Safe for concurrent use.
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

// SettleMails implements [mailer.Store].
func (m *Mails) SettleMails(ctx context.Context, settled []mailer.Settled) error {
	var p dbsqlc.SettleMailsParams
	for _, s := range settled {
		pause := -1.0
		if s.Verdict == mailer.PutOff || s.Verdict == mailer.NotBegun {
			pause = s.Pause.Seconds()
		}
		p.Ids, p.Sent, p.Begun = append(p.Ids, s.ID), append(p.Sent, s.Verdict == mailer.Sent), append(p.Begun, s.Verdict != mailer.NotBegun)
		p.Pauses, p.Reasons = append(p.Pauses, pause), append(p.Reasons, s.Reason)
	}
	_, err := write(ctx, m.store, func(ctx context.Context, q *dbsqlc.Queries) (struct{}, error) {
		return struct{}{}, q.SettleMails(ctx, p)
	})
	return translate("note what became of mails", err)
}
