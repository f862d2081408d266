package authority

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// Attempt is one attempt at what was begun at a provider. Any number of them may run at the same
// time, and only the newest one may settle: ID and Number are the fence. The ID is a part of it
// because numbers begin anew with each use of the key.
type Attempt struct {
	Scope, Key  string
	Fingerprint idempotency.Fingerprint
	Operation   string // as the claim says
	ID          string // of what was begun, see [Begun]
	// Number is 1 for the attempt that began it: no request was sent to the provider before. Later
	// ones may find that an earlier one was executed, or still will be. So a provider that rejects
	// a later one has not said that the first one had no effect; nor has one that rejects the
	// first, if an HTTP client may have sent it twice (transport.Once of package idempotency
	// prevents that). 0: of a provider's event.
	Number  int32
	BegunAt time.Time // when it was begun, by the database's clock
	TakenAt time.Time // when this attempt was taken, by the database's clock
}

// Age is how long ago it was begun when the attempt was taken.
func (a Attempt) Age() time.Duration { return a.TakenAt.Sub(a.BegunAt) }

func (a *Attempt) scan(from pgx.Row) error {
	var fingerprint []byte
	err := from.Scan(&a.Scope, &a.Key, &fingerprint, &a.Operation, &a.ID, &a.Number, &a.BegunAt, &a.TakenAt)
	copy(a.Fingerprint[:], fingerprint)
	return err
}

// Resume queues what else a takeover has to do, before the authority's own statement and in its
// transaction. What it gives to [Tx.AfterSend] may return [pgx.ErrNoRows]: there is nothing to
// resume.
type Resume func(ctx context.Context, tx *Tx)

// Begin is the first phase of an operation at a provider: run begins it and returns [Begun], or
// answers at once with another outcome. If the key is in progress with the same fingerprint, Begin
// takes the next attempt of what it began. Without an attempt, the result is the answer.
//
// resume may be nil, if the rows of the operation have no number of the attempt of their own.
//
// As with [Keys.Once], a claim is for one operation.
func (k *Keys) Begin(ctx context.Context, claim Claim, run Run, resume Resume) (attempt *Attempt, result Result, err error) {
	err = claim.operate(ctx, func() (err error) {
		attempt, result, err = k.beginOperation(ctx, claim, run, resume)
		return err
	})
	return attempt, result, err
}

func (k *Keys) beginOperation(ctx context.Context, claim Claim, run Run, resume Resume) (*Attempt, Result, error) {
	if claim.Key == "" {
		return nil, Result{}, ErrNoKey
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := k.beginClaim(ctx, claim)
	if err != nil {
		return nil, Result{}, err
	}
	defer tx.close(ctx)
	var id string
	result, err := tx.run(ctx, func(ctx context.Context, tx *Tx) (Outcome, error) {
		o, err := run(ctx, tx)
		id = o.id
		return o, err
	}, claiming{Claim: claim, begins: true})
	switch {
	case errors.Is(err, errTaken):
		return tx.takeOver(ctx, claim, resume)
	case err != nil || id == "":
		return nil, result, err
	}
	return &Attempt{Scope: claim.Scope, Key: claim.Key, Fingerprint: claim.Fingerprint, Operation: claim.Operation,
		ID: id, Number: 1, BegunAt: tx.now, TakenAt: tx.now}, Result{}, nil
}

// Settle is the last phase of an operation at a provider: the changes of run, and the answer that
// it returns with [Done] or [Refused], are committed if no newer attempt has begun and nobody has
// settled. Otherwise nothing is committed, and Settle returns the kept answer, [Taken], or
// [ErrUnknown] if the key is used for another request by now. If run returns no outcome, its
// changes are committed and the key stays in progress.
func (k *Keys) Settle(ctx context.Context, a Attempt, run Run) (Result, error) {
	if err := a.check(); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	tx, err := k.begin(ctx, k.sql.fence, a.Scope, a.Key, a.ID, a.Number)
	if err != nil {
		return Result{}, err
	}
	defer tx.close(ctx)
	result, err := tx.run(ctx, run, settling{a})
	if errors.Is(err, errTaken) || errors.Is(err, ErrOvertaken) {
		if a.Number > 0 {
			k.overtaken.Add(1)
		}
		found, err := tx.taken(ctx, a.Scope, a.Key)
		if err != nil {
			return Result{}, err
		}
		return found.replayFor(a)
	}
	return result, err
}

// check refuses what names no attempt.
func (a Attempt) check() error {
	switch {
	case a.Key == "":
		return ErrNoKey
	case a.ID == "":
		return errNoID
	}
	return nil
}

// SettleAny settles what is in progress, at whichever attempt: for whoever learns the outcome
// otherwise, such as by the provider's event. That is the fence for all attempts, because none
// settles what is settled. See [Keys.Find] and [Keys.Settle].
func (k *Keys) SettleAny(ctx context.Context, a Attempt, run Run) (Result, error) {
	a.Number = 0
	return k.Settle(ctx, a, run)
}

// settling keeps an outcome for the key that began an operation.
type settling struct{ Attempt }

func (s settling) keep(tx *Tx, o Outcome, state string, header json.RawMessage) error {
	switch o.kind {
	case nothing:
		return nil
	case done, refused:
		tx.writeKey(tx.keys.sql.finish, s.Scope, s.Key, s.ID, s.Number, state, o.answer.Resource, o.answer.Status, header, bodyOf(o.answer))
		return nil
	}
	return errNotBegun
}

// mayFinish is the fence: whether the attempt $4 at what was begun as $3 may settle; 0: any attempt
// at it may.
const mayFinish = `status = 'in_progress' AND resource_id = $3 AND $4::integer IN (0, attempt)`

const fenceSQL = `-- name: ProbeAttempt :one
SELECT now(), EXISTS (SELECT FROM KEYS WHERE SCOPE = $1 AND key = $2 AND ` + mayFinish + `)`

// finishSQL keeps the answer of what was begun. If the fence is lost, status becomes NULL as in
// claimSQL. The times count from now on, because settling may have taken days.
const finishSQL = `-- name: FinishKey :exec
UPDATE KEYS SET status = CASE WHEN ` + mayFinish + ` THEN $5::text END,
	resource = nullif($6::text, ''), response_status = $7, response_headers = $8, response_body = $9, completed_at = now(),
	expires_at = now() + (expires_at - created_at), tombstone_until = now() + (tombstone_until - created_at), due_at = NULL
WHERE SCOPE = $1 AND key = $2`
