package postgres

import (
	"context"
	"errors"

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

// decided is what a decision led to, or why there is no value.
type decided[T any] struct {
	value   T
	changes checkout.Changes
	err     error
}

// decide makes the first round trip, and then the decision.
func decide[T any](ctx context.Context, tx *transaction, run command[T]) decided[T] {
	decision := run(ctx, tx)
	if err := tx.load(ctx); err != nil {
		return decided[T]{err: err}
	}
	return made(decision())
}

func made[T any](value T, changes checkout.Changes, refused *checkout.Error) decided[T] {
	d := decided[T]{value: value, changes: changes}
	if refused != nil {
		d.err = refused
	}
	return d
}

// once runs a command that is one transaction, under the call's key if it has one. A final error is
// kept under the key like any other answer, so a paused attempt can never commit later. The key may
// be found taken by the first look or by the commit.
func once[T any](ctx context.Context, s *Store, call checkout.Call,
	render checkout.Render[T], run command[T],
) (checkout.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Answer{}, err
	}
	defer tx.close(ctx)
	tx.probeKey(ctx, call)
	answer, err := keep(ctx, tx, call, render, decide(ctx, tx, run))
	if errors.Is(err, errKeyTaken) {
		return tx.kept(ctx, call)
	}
	return answer, err
}

// onceUpToDate is once for a command that decides on what it has read without a lock. If that has
// changed when it writes, the commit fails and keeps nothing, and the command decides again: after
// maxLockFree times on products that it has locked.
func onceUpToDate[T any](ctx context.Context, s *Store, call checkout.Call,
	render checkout.Render[T], run command[T],
) (answer checkout.Answer, err error) {
	for n := range maxDecisions {
		answer, err = once(ctx, s, call, render, func(ctx context.Context, tx *transaction) decision[T] {
			tx.locks = n >= maxLockFree
			return run(ctx, tx)
		})
		if !errors.Is(err, errOutdated) {
			break
		}
	}
	return answer, err
}
