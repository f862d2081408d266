package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Operations at the payment provider have three phases. The first and the third are here; the
// second is a network call outside of any transaction. In between, the key's row is in progress and
// points to the payment or refund. Any number of attempts may run; only the newest one may settle.

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
