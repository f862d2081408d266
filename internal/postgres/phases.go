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

// operations implements [checkout.Operations].
type operations[W any, T interface{ Common() checkout.Operation }] struct {
	store *Store
	begin func(W) command[T]
	// settle queues the lock of what was begun, and of what is changed with it.
	settle func(context.Context, *transaction, T) (locked *T, settle settlement[T])
	resume resumption[T]
	// find returns an operation of any account, with the call that waits for its answer.
	find   func(context.Context, *dbsqlc.Queries, uuid.UUID) (checkout.Taken[T], error)
	take   func(context.Context, *dbsqlc.Queries, dbsqlc.TakePaymentsParams) ([]checkout.Taken[T], error)
	putOff func(context.Context, *dbsqlc.Queries, dbsqlc.PutOffPaymentParams) (int64, error)
}

// settlement decides what follows from the provider's answer.
type settlement[T any] func(checkout.GatewayResult) (T, checkout.Changes, *checkout.Error)

// Begin is phase one: it begins an operation and leaves its key in progress. If the key is in
// progress already, it takes the next attempt of what was begun.
func (o operations[W, T]) Begin(ctx context.Context, call checkout.Call, wanted W, render checkout.Render[T]) (checkout.Begun[T], error) {
	if call.Claim == nil {
		return checkout.Begun[T]{}, errNoClaim
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := o.store.begin(ctx, call.Account)
	if err != nil {
		return checkout.Begun[T]{}, err
	}
	defer tx.close(ctx)
	tx.probeKey(ctx, call)
	d := decide(ctx, tx, o.begin(wanted))
	begun := checkout.Begun[T]{Value: d.value}
	if d.err == nil {
		err = tx.keepInProgress(ctx, *call.Claim, d.value.Common().ID, d.changes)
	} else {
		begun, err = answered[T](keep(ctx, tx, call, render, d))
	}
	if errors.Is(err, errKeyTaken) {
		return takeOver(ctx, tx, call, o.resume)
	}
	return begun, err
}

func answered[T any](answer checkout.Answer, err error) (checkout.Begun[T], error) {
	if err != nil {
		return checkout.Begun[T]{}, err
	}
	return checkout.Begun[T]{Answer: &answer}, nil
}

// keepInProgress commits what begins an operation, with its key in progress for a retry to resume.
func (tx *transaction) keepInProgress(ctx context.Context, claim checkout.Claim, operation uuid.UUID, changes checkout.Changes) error {
	if err := tx.write(ctx, changes); err != nil {
		return err
	}
	tx.claimKey(ctx, claim, dbsqlc.ClaimKeyParams{Status: keyInProgress, ResourceID: &operation,
		TtlSeconds: claim.TTL.Seconds(), TombstoneSeconds: claim.TombstoneTTL.Seconds()})
	return tx.commit(ctx)
}

// Settle is phase three: it settles an operation and its key. If the fence is lost, another attempt
// has settled, or is going to.
func (o operations[W, T]) Settle(ctx context.Context, call checkout.Call, begun T, answer checkout.GatewayResult,
	render checkout.Render[T],
) (checkout.Answer, error) {
	if call.Claim == nil {
		return checkout.Answer{}, errNoClaim
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := o.store.begin(ctx, call.Account)
	if err != nil {
		return checkout.Answer{}, err
	}
	defer tx.close(ctx)
	tx.started = tx.readClock(ctx)
	locked, settle := o.settle(ctx, tx, begun)
	if err := tx.load(ctx); err != nil {
		return checkout.Answer{}, err
	}
	if !(*locked).Common().MaySettle(begun.Common().Attempt) {
		return tx.kept(ctx, call)
	}
	return keep(ctx, tx, call, render, made(settle(answer)))
}
