package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// The consumer groups, which are also the consumers' names in the inbox.
var (
	orderConfirmations   = outbox.Group{Name: "order-confirmations", Types: []string{"order.placed"}}
	paymentConfirmations = outbox.Group{Name: "payment-confirmations", Types: []string{"payment.succeeded"}}
	warehouseNotices     = outbox.Group{Name: "warehouse-notices", Types: []string{"payment.succeeded"}}
)

// ConsumerGroups are the groups that must have every event of their types.
func ConsumerGroups() []outbox.Group {
	return []outbox.Group{orderConfirmations, warehouseNotices, paymentConfirmations}
}

// Inbox makes the effects of events, each once, and is safe for concurrent use. The events of a
// batch and their effects are written by one statement (ConfirmOrders, NoticeWarehouse), which
// skips those that the inbox has already.
type Inbox struct {
	store  *Store
	byMail bool
}

// NewInbox makes an inbox on a pool, which remains the caller's to close. Confirmations are sent as
// mails (see [Mails]) if they are written by an inbox with byMail; others never are.
func NewInbox(pool *pgxpool.Pool, byMail bool) *Inbox {
	return &Inbox{store: NewStore(pool, Options{}), byMail: byMail}
}

// Subscriptions are the consumers: two confirm to the customer that an order was placed or paid,
// and one tells the warehouse to send what was paid. The subject of these events is the order.
func (i *Inbox) Subscriptions() []outbox.Subscription {
	return []outbox.Subscription{
		i.subscription(orderConfirmations, i.confirm(orderConfirmations)),
		i.subscription(warehouseNotices, i.noticeWarehouse),
		i.subscription(paymentConfirmations, i.confirm(paymentConfirmations)),
	}
}

func (i *Inbox) subscription(group outbox.Group, handle func(context.Context, []outbox.Event) (int64, error)) outbox.Subscription {
	return outbox.Subscription{
		Group: group,
		Handle: func(ctx context.Context, events []outbox.Event) (int, error) {
			n, err := handle(ctx, events)
			return int(n), refusal(err)
		},
		Refuse: func(ctx context.Context, event outbox.Event, reason string) (int, error) {
			return i.refuse(ctx, group, event, reason)
		},
	}
}

func (i *Inbox) confirm(group outbox.Group) func(context.Context, []outbox.Event) (int64, error) {
	return func(ctx context.Context, events []outbox.Event) (int64, error) {
		positions, ids := columnsOf(events)
		return write(ctx, i.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
			return q.ConfirmOrders(ctx, dbsqlc.ConfirmOrdersParams{Consumer: group.Name, Types: group.Types,
				Positions: positions, EventIds: ids, ByMail: i.byMail})
		})
	}
}

func (i *Inbox) noticeWarehouse(ctx context.Context, events []outbox.Event) (int64, error) {
	positions, ids := columnsOf(events)
	return write(ctx, i.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.NoticeWarehouse(ctx, dbsqlc.NoticeWarehouseParams{Consumer: warehouseNotices.Name,
			Types: warehouseNotices.Types, Positions: positions, EventIds: ids})
	})
}

// columnsOf are events as a statement takes them. Their types, accounts and subjects are not among
// them: the statement reads these from the outbox, which only transactions of ours write.
func columnsOf(events []outbox.Event) (positions []int64, ids []uuid.UUID) {
	for _, e := range events {
		positions, ids = append(positions, e.Position), append(ids, e.ID)
	}
	return positions, ids
}

// refused are the classes of errors that one event may cause while the others would have their
// effect (PostgreSQL manual, appendix A): data, integrity, limits of a statement, an exception that
// a trigger raises, and corrupted rows. Errors of the connection, of locks, resources, rights and
// the schema concern all events, which wait.
var refused = []string{classData, classIntegrity, "54", "P0", "XX"}

// refusal marks errors that are the fault of the data.
func refusal(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && slices.Contains(refused, server.Code[:2]) {
		return fmt.Errorf("%w: %w", outbox.ErrRefused, err)
	}
	return err
}
