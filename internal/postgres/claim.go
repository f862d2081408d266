package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// The states of a key's row.
const (
	keyInProgress = string(checkout.KeyInProgress) // of an operation at the provider that is not settled
	keyCompleted  = string(checkout.KeyCompleted)
	keyFailed     = string(checkout.KeyFailed)
	keyExpired    = string(checkout.KeyExpired)
	keyRefused    = "refused" // by its newest attempt; see keepRefusal
)

// refusalKept is how long a refusal stops older attempts. It is twice [checkout.MaxAttemptAge], so
// that the clocks of proxy, replica and database may differ by half an hour.
const refusalKept = 2 * checkout.MaxAttemptAge

// probeKey queues a look whether the key may be claimed, which the transaction does when it writes.
// Without a key it only reads the database's clock.
func (tx *transaction) probeKey(ctx context.Context, call checkout.Call) {
	if call.Claim == nil {
		tx.started, tx.isAbandoned = tx.readClock(ctx), call.IsAbandoned
		return
	}
	tx.claims = true
	tx.started = tx.ProbeKey(ctx, []dbsqlc.ProbeKeyParams{{AccountID: call.Account, Key: call.Claim.Key}})
}

// claimKey queues the row of the key before all writes that are queued, as the order of locks
// demands. The commit fails with errKeyTaken if the key is taken.
func (tx *transaction) claimKey(ctx context.Context, claim checkout.Claim, row dbsqlc.ClaimKeyParams) {
	row.AccountID, row.Key, row.Fingerprint, row.Operation = tx.account, claim.Key, claim.Fingerprint[:], claim.Operation
	row.AttemptedAt, row.MaxAgeSeconds = claim.AttemptedAt, checkout.MaxAttemptAge.Seconds()
	row.TraceParent = claim.TraceParent
	tx.first(func() { tx.ClaimKey(ctx, []dbsqlc.ClaimKeyParams{row}) })
}

func (tx *transaction) getKey(ctx context.Context, key string) rowOf[dbsqlc.GetKeyRow] {
	return tx.GetKey(ctx, []dbsqlc.GetKeyParams{{AccountID: tx.account, Key: key}})
}

// keep renders the answer, keeps it under the key with what follows from the decision, and commits.
// Of a refusal it keeps only that the key was refused. It returns any other retryable error, and
// commits nothing.
func keep[T any](ctx context.Context, tx *transaction, call checkout.Call,
	render checkout.Render[T], d decided[T],
) (checkout.Answer, error) {
	answer, state, err := answerTo(render, d)
	if err != nil {
		return checkout.Answer{}, tx.keepRefusal(ctx, call, err)
	}
	if err := tx.write(ctx, d.changes); err != nil {
		return checkout.Answer{}, err
	}
	if call.Claim != nil {
		if err := tx.keepAnswer(ctx, *call.Claim, answer, state); err != nil {
			return checkout.Answer{}, err
		}
	}
	if err := tx.commit(ctx); err != nil {
		return checkout.Answer{}, err
	}
	return answer, nil
}

// keepRefusal returns the error. If it is a refusal, it first commits that the claimed key was
// refused, so that no older copy of the request can act once the client has seen this.
func (tx *transaction) keepRefusal(ctx context.Context, call checkout.Call, err error) error {
	var refused *checkout.Error
	if !tx.claims || !errors.As(err, &refused) || !refused.IsRefusal() {
		return err
	}
	tx.claimKey(ctx, *call.Claim, dbsqlc.ClaimKeyParams{Status: keyRefused, TtlSeconds: refusalKept.Seconds()})
	if lost := tx.commit(ctx); lost != nil {
		return lost
	}
	return err
}

// answerTo is the answer to a value or to a final error, and the state of the key that keeps it.
func answerTo[T any](render checkout.Render[T], d decided[T]) (checkout.Answer, string, error) {
	var refused *checkout.Error
	switch {
	case d.err == nil:
		return render(d.value, nil), keyCompleted, nil
	case errors.As(d.err, &refused) && !refused.Retryable:
		var none T
		return render(none, refused), keyFailed, nil
	default:
		return checkout.Answer{}, "", d.err
	}
}

// keepAnswer queues the answer to be kept under the key. The key is claimed with it, unless phase
// one has claimed it.
func (tx *transaction) keepAnswer(ctx context.Context, claim checkout.Claim, answer checkout.Answer, state string) error {
	header, err := json.Marshal(answer.Header)
	if err != nil {
		return fmt.Errorf("encode the answer's header: %w", err)
	}
	status := int32(answer.Status)
	body := answer.Body
	if body == nil {
		body = []byte{} // an empty body is one, too; NULL means no answer yet
	}
	if tx.claims {
		tx.claimKey(ctx, claim, dbsqlc.ClaimKeyParams{Status: state, Resource: answer.Resource, ResponseStatus: &status,
			ResponseHeaders: header, ResponseBody: body,
			TtlSeconds: claim.TTL.Seconds(), TombstoneSeconds: claim.TombstoneTTL.Seconds()})
		return nil
	}
	tx.FinishKey(ctx, []dbsqlc.FinishKeyParams{{AccountID: tx.account, Key: claim.Key, Status: state,
		Resource: answer.Resource, ResponseStatus: &status, ResponseHeaders: header, ResponseBody: body}})
	return nil
}

// kept is the answer that was kept under a taken key. It rolls back and reads in one round trip, in
// a new statement, which sees what the other one committed.
func (tx *transaction) kept(ctx context.Context, call checkout.Call) (checkout.Answer, error) {
	if call.Claim == nil {
		return checkout.Answer{}, checkout.ErrUnauthorized // nothing to claim, so it is the account that is not there
	}
	tx.rollback(ctx)
	key := tx.getKey(ctx, call.Claim.Key)
	tx.send(ctx)
	return tx.decide(*call.Claim, key)
}

// decide reads a key that is taken and returns what the claim leads to.
func (tx *transaction) decide(claim checkout.Claim, query rowOf[dbsqlc.GetKeyRow]) (checkout.Answer, error) {
	row, err := one(query)
	if errors.Is(err, pgx.ErrNoRows) {
		return checkout.Answer{}, checkout.Unavailable("claim the idempotency key", errUnclaimable)
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return checkout.Answer{}, translate("read the idempotency key", err)
	}
	return replay(claim, key{row.IdempotencyKey, seconds(row.SecondsLeft)})
}

// key is a key's row and how much longer the row holds, by the database's clock.
type key struct {
	dbsqlc.IdempotencyKey
	left time.Duration
}

// state is the state of the key now, or "" if it counts as purged. Purging comes later than the
// time that was promised, and must make no difference.
func (k key) state() string {
	switch {
	case k.Status == keyInProgress || k.Status == keyRefused || k.left > 0:
		return k.Status
	case k.TombstoneUntil != nil && k.left+k.TombstoneUntil.Sub(k.ExpiresAt) > 0:
		return keyExpired
	}
	return ""
}

// replay returns the answer that a taken key was finished with. A key in progress is not decided,
// not even for another request: [checkout.ErrKeyReused] is final.
func replay(claim checkout.Claim, k key) (checkout.Answer, error) {
	switch state := k.state(); {
	case state == keyRefused:
		return checkout.Answer{}, checkout.ErrNewerAttemptRefused
	case state == keyInProgress:
		return checkout.Answer{}, checkout.KeyInProgressSince(k.CreatedAt)
	case state == "": // its time was up between the claim and this look
		return checkout.Answer{}, checkout.ErrKeyInProgress
	case !bytes.Equal(k.Fingerprint, claim.Fingerprint[:]):
		return checkout.Answer{}, checkout.ErrKeyReused
	case state == keyExpired:
		return checkout.Answer{}, checkout.ExpiredKey(text(k.Resource))
	}
	return k.answer()
}

// answer is the answer that a finished key has kept.
func (k key) answer() (checkout.Answer, error) {
	answer := checkout.Answer{Status: int(*k.ResponseStatus), Body: k.ResponseBody, Resource: text(k.Resource), Replayed: true,
		KeptFor: k.left, TraceParent: text(k.TraceParent)}
	if err := json.Unmarshal(k.ResponseHeaders, &answer.Header); err != nil {
		return checkout.Answer{}, fmt.Errorf("decode the kept answer's header: %w", err)
	}
	return answer, nil
}

// Key returns what is known of a key. See [checkout.Store].
func (s *Store) Key(ctx context.Context, account uuid.UUID, name string) (checkout.Key, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Key, error) {
		row, err := q.ReadKey(ctx, dbsqlc.ReadKeyParams{AccountID: account, Key: name})
		if errors.Is(err, pgx.ErrNoRows) {
			return checkout.Key{}, checkout.ErrKeyNotFound
		}
		if err != nil {
			return checkout.Key{}, translate("read an idempotency key", err)
		}
		return key{row.IdempotencyKey, seconds(row.SecondsLeft)}.known()
	})
}

// known is what a client may know of the key.
func (k key) known() (known checkout.Key, err error) {
	state := k.state()
	known = checkout.Key{Key: k.Key, State: checkout.KeyState(state), Operation: k.Operation, Resource: k.ResourceID,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
	switch state {
	case "", keyRefused:
		return checkout.Key{}, checkout.ErrKeyNotFound
	case keyInProgress:
		return known, nil
	}
	known.CompletedAt = *k.CompletedAt
	if state != keyExpired {
		known.Answer, err = k.answer()
		return known, err
	}
	known.Answer = checkout.Answer{Status: int(*k.ResponseStatus), Resource: text(k.Resource)}
	if k.TombstoneUntil != nil { // not purged yet
		known.ExpiresAt = *k.TombstoneUntil
	}
	return known, nil
}

// text is a nullable text; NULL is empty.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
