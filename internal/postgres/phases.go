package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Operations at the payment provider have three phases. The first and the third
// are here; the second is a network call and in no transaction. Between them
// the key's row is in progress and points to what was begun, and any number of
// attempts may be under way: the newest one may settle.

// later is a queued query whose result is read after the round trip.
type later[T any] func() (T, error)

// resumption queues the next attempt of what a key in progress began. No row
// means that there is nothing to go on with.
type resumption[T any] func(context.Context, *transaction) later[T]

// phaseOne begins an operation and leaves its key in progress. If the key is in
// progress already, it goes on with what was begun, at its next attempt.
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
		return takeUp(ctx, tx, call, resume)
	case err != nil:
		tx.drop()
		return answered[T](keep(ctx, tx, call, render, value, err))
	}
	if err := tx.commit(ctx); err != nil {
		return checkout.Begun[T]{}, err
	}
	return checkout.Begun[T]{Value: value}, nil
}

// takeUp rolls back, takes the next attempt of what the key began, and reads
// the key in case there is nothing to go on with. The round trip is a
// transaction of its own, committed at its end.
func takeUp[T any](ctx context.Context, tx *transaction, call checkout.Call,
	resume resumption[T],
) (checkout.Begun[T], error) {
	tx.rollback()
	resumed := resume(ctx, tx)
	key := tx.GetKey(ctx, []dbsqlc.GetKeyParams{{AccountID: call.Account, Key: call.Claim.Key}})
	tx.send(ctx)
	value, err := resumed()
	if errors.Is(err, pgx.ErrNoRows) {
		return answered[T](tx.verdict(*call.Claim, key))
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return checkout.Begun[T]{}, translate("take up the operation", err)
	}
	return checkout.Begun[T]{Value: value}, nil
}

func answered[T any](reply checkout.Reply, err error) (checkout.Begun[T], error) {
	if err != nil {
		return checkout.Begun[T]{}, err
	}
	return checkout.Begun[T]{Reply: &reply}, nil
}

// phaseThree settles an operation and its key. The command checks the fence; if
// it is lost, the settled reply is somebody else's, or there is none yet.
func phaseThree[T any](ctx context.Context, s *Store, call checkout.Call,
	render checkout.Render[T], settle command[T],
) (checkout.Reply, error) {
	if call.Claim == nil {
		return checkout.Reply{}, errNoClaim
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Reply{}, err
	}
	defer tx.close(ctx)
	tx.started = tx.Now(ctx, []uuid.UUID{call.Account})
	tx.LockKey(ctx, []dbsqlc.LockKeyParams{{AccountID: call.Account, Key: call.Claim.Key}})
	value, err := settle(ctx, tx)
	if errors.Is(err, errFenceLost) {
		return tx.kept(ctx, call)
	}
	return keep(ctx, tx, call, render, value, err)
}

// pointKey queues what a retry of the call goes on with.
func (tx *transaction) pointKey(ctx context.Context, call checkout.Call, resource uuid.UUID) {
	tx.PointKey(ctx, []dbsqlc.PointKeyParams{{AccountID: tx.account, Key: call.Claim.Key, ResourceID: &resource}})
}
