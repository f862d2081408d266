package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// The consumer groups, which are also the consumers' names in the inbox.
const (
	orderConfirmations = "order-confirmations"
	warehouseNotices   = "warehouse-notices"
)

// Inbox makes the effects of events, each once, and is safe for concurrent use.
// The ID of the event and the effect are written by one statement.
type Inbox struct {
	store *Store
}

// NewInbox makes an inbox on a pool, which remains the caller's to close.
func NewInbox(pool *pgxpool.Pool) *Inbox { return &Inbox{store: NewStore(pool, Options{})} }

// Subscriptions are the sample consumers: one tells the customer that an order
// was placed, the other tells the warehouse to send what was paid. The subject
// of both events is the order.
func (i *Inbox) Subscriptions() []outbox.Subscription {
	return []outbox.Subscription{
		{Group: orderConfirmations, Types: []string{"order.placed"}, Handle: i.confirmOrder},
		{Group: warehouseNotices, Types: []string{"payment.succeeded"}, Handle: i.noticeWarehouse},
	}
}

func (i *Inbox) confirmOrder(ctx context.Context, event outbox.Event) (first bool, err error) {
	n, err := write(ctx, i.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.ConfirmOrder(ctx, dbsqlc.ConfirmOrderParams{Consumer: orderConfirmations, EventID: event.ID,
			AccountID: event.AccountID, OrderID: event.Subject})
	})
	return n > 0, err
}

func (i *Inbox) noticeWarehouse(ctx context.Context, event outbox.Event) (first bool, err error) {
	n, err := write(ctx, i.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.NoticeWarehouse(ctx, dbsqlc.NoticeWarehouseParams{Consumer: warehouseNotices, EventID: event.ID,
			AccountID: event.AccountID, OrderID: event.Subject})
	})
	return n > 0, err
}
