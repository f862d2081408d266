package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
)

// A key in progress whose operation is at the payment provider is taken over: any request with the
// same fingerprint continues it with the next attempt number, and the fence stops the attempts
// before it. Whether the replica of the first attempt still runs is not asked; while it does, its
// lease in the accelerator keeps others away.

// resumption queues the next attempt of what a key in progress began. No row means that there is
// nothing to resume.
type resumption[T any] func(*transaction, context.Context, checkout.Claim) func() (T, error)

// takeOver rolls back, takes the next attempt of what the key began, and reads the key in case
// there is nothing to resume. The round trip is a transaction of its own, committed at its end.
func takeOver[T any](ctx context.Context, tx *transaction, call checkout.Call,
	resume resumption[T],
) (checkout.Begun[T], error) {
	tx.rollback(ctx)
	resumed := resume(tx, ctx, *call.Claim)
	key := tx.getKey(ctx, call.Claim.Key)
	tx.send(ctx)
	value, err := resumed()
	if errors.Is(err, pgx.ErrNoRows) {
		return answered[T](tx.decide(*call.Claim, key))
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return checkout.Begun[T]{}, translate("take over the operation", err)
	}
	return checkout.Begun[T]{Value: value}, nil
}
