package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Operations at the payment provider have three phases. The first and the third are here; the
// second is a network call outside of any transaction. In between, the key's row is in progress
// and names the payment or refund. Any number of attempts may run; only the newest one may
// settle.
//
// The number of the attempt is in the key's row, where the authority counts and compares it.

// operations implements [checkout.Operations].
type operations[W any, T interface{ Common() checkout.Operation }] struct {
	store *Store
	begin func(W) command[T]
	// settle queues the lock of what was begun, and of what is changed with it.
	settle func(context.Context, *transaction, T) (locked *T, settle settlement[T])
	resume resumption[T]
	// find returns an operation of any account, with the call that waits for its answer.
	find func(context.Context, *dbsqlc.Queries, uuid.UUID) (checkout.Taken[T], error)
	// keepID keeps the provider's ID of an operation whose outcome is unknown.
	keepID func(context.Context, *dbsqlc.Queries, dbsqlc.KeepChargeIDParams) error
}

// settlement decides what follows from the provider's answer.
type settlement[T any] func(checkout.GatewayResult) (T, checkout.Changes, *checkout.Error)

// resumption queues the load of what a key in progress began. No row means that there is nothing
// to resume.
type resumption[T any] func(*transaction, context.Context, checkout.Claim) func() (T, error)

// Begin is phase one: it begins an operation and leaves its key in progress. If the key is in
// progress already, it takes the next attempt of what was begun.
func (o operations[W, T]) Begin(ctx context.Context, call checkout.Call, wanted W) (checkout.Begun[T], error) {
	var value T
	var attempt *authority.Attempt
	answer, err := o.store.under(call, func(run authority.Run) (result authority.Result, err error) {
		attempt, result, err = o.store.keys.Begin(ctx, o.store.claimOf(ctx, call), run, func(ctx context.Context, raw *authority.Tx) {
			resumed := o.resume(&transaction{Queries: dbsqlc.New(raw), Tx: raw, account: call.Account}, ctx, *call.Claim)
			raw.AfterSend(func() (err error) { value, err = resumed(); return err })
		})
		return result, err
	}, func(ctx context.Context, tx *transaction) (authority.Outcome, error) {
		decision := o.begin(wanted)(ctx, tx)
		if err := tx.load(ctx); err != nil {
			return tx.refuse(err)
		}
		begun, changes, final := decision()
		if final != nil {
			return conclude(ctx, tx, begun, changes, final)
		}
		value = begun
		return authority.Begun(begun.Common().ID.String()), tx.write(ctx, changes)
	})
	switch {
	case err != nil:
		return checkout.Begun[T]{}, err
	case attempt == nil:
		return checkout.Begun[T]{Answer: &answer}, nil
	}
	claim := *call.Claim
	claim.Attempt = attempt.Number
	call.Claim = &claim
	return checkout.Begun[T]{Taken: checkout.Taken[T]{Call: call, Value: value}}, nil
}

// Settle is phase three: it settles an operation and its key. If the fence is lost, another attempt
// has settled, or is going to.
func (o operations[W, T]) Settle(ctx context.Context, taken checkout.Taken[T], answer checkout.GatewayResult) (checkout.Answer, error) {
	return o.store.under(taken.Call, func(run authority.Run) (authority.Result, error) {
		return o.store.keys.Settle(ctx, attemptOf(taken), run)
	},
		func(ctx context.Context, tx *transaction) (authority.Outcome, error) {
			locked, settle := o.settle(ctx, tx, taken.Value)
			if err := tx.loadBegun(ctx); err != nil {
				return authority.Outcome{}, err
			}
			if !(*locked).Common().MaySettle() {
				return authority.Outcome{}, authority.ErrOvertaken
			}
			value, changes, final := settle(answer)
			return conclude(ctx, tx, value, changes, final)
		})
}
