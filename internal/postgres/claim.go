package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A key in progress belongs to an operation at the payment provider whose
// outcome is not settled yet.
const (
	keyInProgress = string(checkout.KeyInProgress)
	keyCompleted  = string(checkout.KeyCompleted)
	keyFailed     = string(checkout.KeyFailed)
)

var (
	// errKeyTaken stops a decision: somebody else has the key.
	errKeyTaken = errors.New("the idempotency key is taken")

	// errFenceLost stops a settlement: it is no longer this attempt's to make.
	errFenceLost = errors.New("the attempt is not the newest one")

	// errNoClaim is a mistake of the caller: what is done in several transactions
	// can only be taken up again by its key.
	errNoClaim = errors.New("an operation at the payment provider needs an idempotency key")
)

// command loads, decides and queues the writes of one transaction.
type command[T any] func(context.Context, *transaction) (T, error)

// once runs a command that is one transaction, under the call's key if it has
// one. A final error is kept under the key like any other reply and what the
// command had queued is dropped, so a paused attempt can never commit later.
func once[T any](ctx context.Context, s *Store, call checkout.Call,
	render checkout.Render[T], run command[T],
) (checkout.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := s.begin(ctx, call.Account)
	if err != nil {
		return checkout.Reply{}, err
	}
	defer tx.close(ctx)
	tx.claim(ctx, call)
	value, err := run(ctx, tx)
	if errors.Is(err, errKeyTaken) {
		return tx.kept(ctx, call)
	}
	if err != nil {
		tx.drop()
	}
	return keep(ctx, tx, call, render, value, err)
}

// claim queues the insertion of the key, or with no key just a look at the
// database's clock.
func (tx *transaction) claim(ctx context.Context, call checkout.Call) {
	if call.Claim == nil {
		tx.started = tx.Now(ctx, []uuid.UUID{call.Account})
		return
	}
	tx.started = tx.ClaimKey(ctx, []dbsqlc.ClaimKeyParams{{AccountID: call.Account, Key: call.Claim.Key,
		Fingerprint: call.Claim.Fingerprint[:], Operation: call.Claim.Operation, TtlSeconds: call.Claim.TTL.Seconds(),
		TraceParent: call.Claim.TraceParent}})
}

// keep renders the outcome, keeps it under the key and commits. It passes on a
// retryable error, and commits nothing.
func keep[T any](ctx context.Context, tx *transaction, call checkout.Call,
	render checkout.Render[T], value T, err error,
) (checkout.Reply, error) {
	reply, err := outcome(render, value, err)
	if err != nil {
		return checkout.Reply{}, err
	}
	if call.Claim != nil {
		if err := tx.finishKey(ctx, *call.Claim, reply); err != nil {
			return checkout.Reply{}, err
		}
	}
	if err := tx.commit(ctx); err != nil {
		return checkout.Reply{}, err
	}
	return reply, nil
}

// outcome is the reply to a value or to a final error.
func outcome[T any](render checkout.Render[T], value T, err error) (checkout.Reply, error) {
	var refused *checkout.Error
	switch {
	case err == nil:
		return render(value, nil), nil
	case errors.As(err, &refused) && !refused.Retryable:
		var none T
		return render(none, refused), nil
	default:
		return checkout.Reply{}, err
	}
}

// finishKey queues the reply to be kept under the key, which is ours and locked.
func (tx *transaction) finishKey(ctx context.Context, claim checkout.Claim, reply checkout.Reply) error {
	header, err := json.Marshal(reply.Header)
	if err != nil {
		return fmt.Errorf("encode the reply's header: %w", err)
	}
	status, state := int32(reply.Status), keyFailed
	if reply.Status >= 200 && reply.Status < 300 {
		state = keyCompleted
	}
	body := reply.Body
	if body == nil {
		body = []byte{} // an empty body is one, too; NULL means no reply yet
	}
	tx.FinishKey(ctx, []dbsqlc.FinishKeyParams{{AccountID: tx.account, Key: claim.Key, Status: state,
		ResponseStatus: &status, ResponseHeaders: header, ResponseBody: body}})
	return nil
}

// kept is the reply that was kept under a taken key. It rolls back and reads in
// one round trip, in a new statement, which sees what the other one committed.
func (tx *transaction) kept(ctx context.Context, call checkout.Call) (checkout.Reply, error) {
	if call.Claim == nil {
		return checkout.Reply{}, checkout.ErrUnauthorized // nothing to claim, so it is the account that is not there
	}
	tx.rollback()
	key := tx.GetKey(ctx, []dbsqlc.GetKeyParams{{AccountID: call.Account, Key: call.Claim.Key}})
	tx.send(ctx)
	return tx.verdict(*call.Claim, key)
}

// verdict reads a key and says what the claim leads to.
func (tx *transaction) verdict(claim checkout.Claim, query rowOf[dbsqlc.IdempotencyKey]) (checkout.Reply, error) {
	key, err := one(query)
	if errors.Is(err, pgx.ErrNoRows) { // it was taken and is gone again
		return checkout.Reply{}, checkout.ErrKeyInProgress
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return checkout.Reply{}, translate("read the idempotency key", err)
	}
	return replay(claim, key)
}

// replay gives the reply that a key was finished with.
func replay(claim checkout.Claim, key dbsqlc.IdempotencyKey) (checkout.Reply, error) {
	if !bytes.Equal(key.Fingerprint, claim.Fingerprint[:]) {
		return checkout.Reply{}, checkout.ErrKeyReused
	}
	if key.Status == keyInProgress {
		return checkout.Reply{}, checkout.ErrKeyInProgress
	}
	return replyOf(key)
}

// replyOf is the reply that a finished key has kept.
func replyOf(key dbsqlc.IdempotencyKey) (checkout.Reply, error) {
	reply := checkout.Reply{Status: int(*key.ResponseStatus), Body: key.ResponseBody, Replayed: true}
	if key.TraceParent != nil {
		reply.TraceParent = *key.TraceParent
	}
	if err := json.Unmarshal(key.ResponseHeaders, &reply.Header); err != nil {
		return checkout.Reply{}, fmt.Errorf("decode the kept reply's header: %w", err)
	}
	return reply, nil
}

// Key gives what is known of a key. See [checkout.Store].
func (s *Store) Key(ctx context.Context, account uuid.UUID, key string) (checkout.Key, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Key, error) {
		row, err := q.ReadKey(ctx, dbsqlc.ReadKeyParams{AccountID: account, Key: key})
		if errors.Is(err, pgx.ErrNoRows) {
			return checkout.Key{}, checkout.ErrKeyNotFound
		}
		if err != nil {
			return checkout.Key{}, translate("read an idempotency key", err)
		}
		known := checkout.Key{Key: row.Key, State: checkout.KeyState(row.Status), Operation: row.Operation, Resource: row.ResourceID,
			CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt}
		if row.Status != keyInProgress {
			known.CompletedAt = *row.CompletedAt
			known.Reply, err = replyOf(row)
		}
		return known, err
	})
}
