package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// transaction is the shop's view of one transaction of the authority. What is queued first goes out
// with load, what is queued then with the commit.
type transaction struct {
	*dbsqlc.Queries
	*authority.Tx
	store   *Store
	call    checkout.Call
	account uuid.UUID // of the call, or of the order that expires
	locks   bool      // whether products are locked when they are read
	events  bool      // whether there is something for the relay to publish
	takes   []product // whose stock it takes, in lock order
	refused error     // what the client may correct
}

// under runs a transaction of the authority for a call, and returns the answer in the shop's terms.
func (s *Store) under(call checkout.Call, transact func(authority.Run) (authority.Result, error),
	run func(context.Context, *transaction) (authority.Outcome, error),
) (checkout.Answer, error) {
	var refused error
	result, err := transact(func(ctx context.Context, raw *authority.Tx) (authority.Outcome, error) {
		tx := &transaction{Queries: dbsqlc.New(raw), Tx: raw, store: s, call: call, account: call.Account}
		outcome, err := run(ctx, tx)
		refused = tx.refused
		return outcome, err
	})
	if result.Correctable {
		err = refused
	}
	if err != nil {
		return checkout.Answer{}, translate("make a transaction", err)
	}
	return answerOf(result), nil
}

// load is the first round trip: it begins the transaction, sends all that is queued and reads the
// results. Nothing may be decided after an error.
func (tx *transaction) load(ctx context.Context) error {
	// The row of a key belongs to an account. The account of an event or of what expires is known
	// only later.
	if tx.call.Claim == nil && tx.account != uuid.Nil {
		tx.requireAccount(ctx)
	}
	return tx.Send(ctx)
}

// loadBegun is load for what was begun at the provider. If its rows are gone, with commits that a
// failover lost, its outcome is unknown: "not found" would say that nothing was done.
func (tx *transaction) loadBegun(ctx context.Context) error {
	err := tx.load(ctx)
	var domain *checkout.Error
	if errors.As(err, &domain) && domain.Kind == checkout.KindNotFound {
		return checkout.Unavailable("load what was begun", err)
	}
	return err
}

// requireAccount queues a look at the account. Loading fails if there is none.
func (tx *transaction) requireAccount(ctx context.Context) {
	query := tx.AccountExists(ctx, []uuid.UUID{tx.account})
	tx.AfterSend(func() error {
		_, err := one(query)
		if errors.Is(err, pgx.ErrNoRows) {
			return checkout.ErrUnauthorized
		}
		return err
	})
}

// conclude ends a transaction with the outcome of a decision. The answer is encoded before the
// commit, so that what is kept is what is sent.
func conclude[T any](ctx context.Context, tx *transaction, value T, changes checkout.Changes, final *checkout.Error) (authority.Outcome, error) {
	switch final.Outcome() {
	case checkout.Done:
		return authority.Done(tx.encode(value, nil)), tx.write(ctx, changes)
	case checkout.Refused:
		return authority.Refused(tx.encode(nil, final)), tx.write(ctx, changes)
	default:
		return tx.refuse(final)
	}
}

// refuse ends a transaction without changes. A refusal for now is remembered under the key, so that
// no older copy of the request can act once the client has seen it.
func (tx *transaction) refuse(err error) (authority.Outcome, error) {
	var refused *checkout.Error
	if tx.call.Claim == nil || !errors.As(err, &refused) || refused.Outcome() != checkout.RefusedForNow {
		return authority.Outcome{}, err
	}
	tx.refused = err
	return authority.RefusedForNow(authority.Answer{}), nil
}

func (tx *transaction) encode(value any, final *checkout.Error) authority.Answer {
	return tx.call.Encode(value, final).(authority.Answer)
}

// loaded has load read the result of a query that was queued, to where it returns.
func loaded[T any](tx *transaction, read func() (T, error)) *T {
	value := new(T)
	tx.AfterSend(func() (err error) {
		*value, err = read()
		return err
	})
	return value
}

// rowOf and rowsOf are what the generated batch queries return.
type (
	rowOf[T any]  interface{ QueryRow(func(int, T, error)) }
	rowsOf[T any] interface{ Query(func(int, []T, error)) }
)

// one reads the row of a query that was sent. No row is pgx.ErrNoRows.
func one[T any](query rowOf[T]) (value T, err error) {
	query.QueryRow(func(_ int, v T, e error) { value, err = v, e })
	return value, err
}

// many reads the rows of a query that was sent.
func many[T any](query rowsOf[T]) (values []T, err error) {
	query.Query(func(_ int, v []T, e error) { values, err = v, e })
	return values, err
}
