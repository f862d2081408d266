package postgres

import (
	"context"
	"errors"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

const (
	// maxDecisions bounds how often a command decides anew in one request. The client may retry.
	maxDecisions = 10
	// maxLockFree is how many of them lock nothing before they write. If others change the same
	// product all the time, such as its price, a command that locks nothing may lose each time.
	maxLockFree = 3
)

// command queues what a decision needs to know, and returns the decision. It is made once that is
// loaded.
type command[T any] func(context.Context, *transaction) decision[T]

// decision is one of package checkout. An error is final if there are changes, too.
type decision[T any] func() (T, checkout.Changes, *checkout.Error)

// once runs a command that is one transaction, under the call's key if it has one. A final error is
// kept under the key like any other answer, so a paused attempt can never commit later.
func once[T any](ctx context.Context, s *Store, call checkout.Call, run command[T]) (checkout.Answer, error) {
	return s.under(call, func(run authority.Run) (authority.Result, error) { return s.keys.Once(ctx, s.claimOf(ctx, call), run) },
		func(ctx context.Context, tx *transaction) (authority.Outcome, error) { return decide(ctx, tx, run) })
}

// keyless makes a transaction that claims no key.
func (s *Store) keyless(ctx context.Context) func(authority.Run) (authority.Result, error) {
	return func(run authority.Run) (authority.Result, error) { return s.keys.Once(ctx, authority.Claim{}, run) }
}

// decide makes the first round trip, and then the decision.
func decide[T any](ctx context.Context, tx *transaction, run command[T]) (authority.Outcome, error) {
	decision := run(ctx, tx)
	if err := tx.load(ctx); err != nil {
		return tx.refuse(err)
	}
	value, changes, final := decision()
	return conclude(ctx, tx, value, changes, final)
}

// onceUpToDate is once for a command that decides on what it has read without a lock. If that has
// changed when it writes, the commit fails and keeps nothing, and the command decides again: after
// maxLockFree times on products that it has locked.
func onceUpToDate[T any](ctx context.Context, s *Store, call checkout.Call, run command[T]) (answer checkout.Answer, err error) {
	for n := range maxDecisions {
		answer, err = once(ctx, s, call, func(ctx context.Context, tx *transaction) decision[T] {
			tx.locks = n >= maxLockFree
			return run(ctx, tx)
		})
		if !errors.Is(err, errOutdated) {
			break
		}
	}
	return answer, err
}
