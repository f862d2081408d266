package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ checkout.ExpiryStore = (*Store)(nil)

// errNothingDue ends a transaction that has nothing to do.
var errNothingDue = errors.New("no order is due")

// ExpireOrders expires unpaid orders of any account and returns their stock. It locks the orders
// without waiting, then their products in the usual order.
func (s *Store) ExpireOrders(ctx context.Context, limit int) (expired int, err error) {
	call := checkout.Call{} // without a key
	_, err = s.under(call, s.keyless(ctx), func(ctx context.Context, tx *transaction) (authority.Outcome, error) {
		due, err := tx.lockDueOrders(ctx, limit)
		if err != nil {
			return authority.Outcome{}, err
		}
		for _, row := range due {
			if err := tx.expire(ctx, row); err != nil {
				return authority.Outcome{}, err
			}
		}
		expired = len(due)
		return authority.Outcome{}, nil
	})
	if errors.Is(err, errNothingDue) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return expired, nil
}

// lockDueOrders makes the first round trip, and queues the locks of the orders' products.
func (tx *transaction) lockDueOrders(ctx context.Context, limit int) ([]dbsqlc.LockDueOrdersRow, error) {
	query := tx.LockDueOrders(ctx, []int32{int32(limit)})
	due := loaded(tx, func() ([]dbsqlc.LockDueOrdersRow, error) {
		rows, err := many(query)
		if err == nil && len(rows) == 0 {
			err = errNothingDue
		}
		return rows, err
	})
	if err := tx.load(ctx); err != nil {
		return nil, err
	}
	ids := make([]uuid.UUID, len(*due))
	for i, row := range *due {
		ids[i] = row.Order.ID
	}
	tx.lockProductsOfOrders(ctx, ids)
	return *due, nil
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
