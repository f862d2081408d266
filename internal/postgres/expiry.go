package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.ExpiryStore = (*Store)(nil)

// ExpireOrders expires unpaid orders of any account and returns their stock. It locks the orders
// without waiting, then their products in the usual order.
func (s *Store) ExpireOrders(ctx context.Context, limit int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, uuid.Nil)
	if err != nil {
		return 0, err
	}
	defer tx.close(ctx)
	lockDueOrders := tx.LockDueOrders(ctx, []int32{int32(limit)})
	if err := tx.open(ctx); err != nil {
		return 0, translate("begin a transaction", err)
	}
	due, err := many(lockDueOrders)
	if err != nil || len(due) == 0 {
		return 0, translate("lock unpaid orders", err)
	}
	ids := make([]uuid.UUID, len(due))
	for i, row := range due {
		ids[i] = row.Order.ID
	}
	tx.lockProductsOfOrders(ctx, ids)
	for _, row := range due {
		if err := tx.expire(ctx, row); err != nil {
			return 0, err
		}
	}
	if err := tx.commit(ctx); err != nil {
		return 0, err
	}
	return len(due), nil
}

// expire queues the end of a locked order, of whichever account it is.
func (tx *transaction) expire(ctx context.Context, row dbsqlc.LockDueOrdersRow) error {
	order, err := orderOf(row.Order, row.Items)
	if err != nil {
		return err
	}
	tx.account = row.Order.AccountID
	return tx.write(ctx, checkout.ExpireOrder(order, row.Now))
}
