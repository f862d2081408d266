package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Operations at the payment provider have three phases. The first and the third are here; the
// second is a network call outside of any transaction. In between, the key's row is in progress and
// points to the payment or refund. Any number of attempts may run; only the newest one may settle.

// resumption queues the next attempt of what a key in progress began. No row means that there is
// nothing to resume.
type resumption[T any] func(*transaction, context.Context, checkout.Claim) later[T]

// phaseOne begins an operation and leaves its key in progress. If the key is in progress already,
// it takes the next attempt of what was begun.
func phaseOne[T any](ctx context.Context, s *Store, call checkout.Call, render checkout.Render[T],
	start command[T], resume resumption[T],
) (checkout.Begun[T], error) {
	if call.Claim == nil {
		return checkout.Begun[T]{}, errNoClaim
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Begun[T]{}, err
	}
	defer tx.close(ctx)
	tx.claim(ctx, call)
	value, err := start(ctx, tx)
	switch {
	case errors.Is(err, errKeyTaken):
		return takeOver(ctx, tx, call, resume)
	case err != nil:
		tx.drop()
		return answered[T](keep(ctx, tx, call, render, value, err))
	}
	if err := tx.commit(ctx); err != nil {
		return checkout.Begun[T]{}, err
	}
	return checkout.Begun[T]{Value: value}, nil
}

// takeOver rolls back, takes the next attempt of what the key began, and reads the key in case
// there is nothing to resume. The round trip is a transaction of its own, committed at its end.
func takeOver[T any](ctx context.Context, tx *transaction, call checkout.Call,
	resume resumption[T],
) (checkout.Begun[T], error) {
	tx.rollback()
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

func answered[T any](answer checkout.Answer, err error) (checkout.Begun[T], error) {
	if err != nil {
		return checkout.Begun[T]{}, err
	}
	return checkout.Begun[T]{Answer: &answer}, nil
}

// phaseThree settles an operation and its key. The command checks the fence. If the fence is lost,
// another attempt has settled, or is going to.
func phaseThree[T any](ctx context.Context, s *Store, call checkout.Call,
	render checkout.Render[T], settle command[T],
) (checkout.Answer, error) {
	if call.Claim == nil {
		return checkout.Answer{}, errNoClaim
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Answer{}, err
	}
	defer tx.close(ctx)
	tx.started = tx.readClock(ctx)
	tx.lockKey(ctx, call.Claim.Key)
	value, err := settle(ctx, tx)
	if errors.Is(err, errFenceLost) {
		return tx.kept(ctx, call)
	}
	return keep(ctx, tx, call, render, value, err)
}

// pointKey queues what a retry of the call resumes.
func (tx *transaction) pointKey(ctx context.Context, call checkout.Call, resource uuid.UUID) {
	tx.PointKey(ctx, []dbsqlc.PointKeyParams{{AccountID: tx.account, Key: call.Claim.Key, ResourceID: &resource}})
}
