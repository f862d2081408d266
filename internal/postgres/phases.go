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
	tx.probeKey(ctx, call)
	value, err := start(ctx, tx)
	begun := checkout.Begun[T]{Value: value}
	if err == nil {
		err = tx.commit(ctx)
	} else {
		tx.drop()
		begun, err = answered[T](keep(ctx, tx, call, render, value, err))
	}
	if errors.Is(err, errKeyTaken) {
		return takeOver(ctx, tx, call, resume)
	}
	return begun, err
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
	value, err := settle(ctx, tx)
	if errors.Is(err, errFenceLost) {
		return tx.kept(ctx, call)
	}
	return keep(ctx, tx, call, render, value, err)
}

// claimInProgress queues the key's row in progress, with what a retry of the call resumes.
func (tx *transaction) claimInProgress(ctx context.Context, claim checkout.Claim, resource uuid.UUID) {
	tx.claimKey(ctx, claim, dbsqlc.ClaimKeyParams{Status: keyInProgress, ResourceID: &resource,
		TtlSeconds: claim.TTL.Seconds(), TombstoneSeconds: claim.TombstoneTTL.Seconds()})
}
