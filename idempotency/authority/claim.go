package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

// Claim is the right to have one effect under a key. A key means nothing outside its scope.
//
// A claim without a key claims nothing: the transaction is made all the same, and retrying is the
// client's own risk.
type Claim struct {
	Scope, Key  string
	Fingerprint idempotency.Fingerprint // of the request; another one under the same key is refused
	Operation   string                  // what the key is used for, such as "place_order"
	TTL         time.Duration           // how long the answer is kept
	// TombstoneTTL is how long it is remembered that the key was used, for what moves money. Zero:
	// as long as the answer.
	TombstoneTTL time.Duration
	// ArrivedAt is when the client attempt arrived, by the clock of the proxy or of the replica.
	// Once an attempt was refused, no older one may act.
	ArrivedAt   time.Time
	TraceParent string // names the request in a trace; may be empty
	// IsAbandoned reports whether the client is gone, such as [arrival.IsAbandoned]. Of a claim
	// without a key it is asked once the transaction has begun, and before it commits, because
	// nothing else stops an older copy of the request. nil: never.
	IsAbandoned func() bool
}

// operate runs an operation under the claim that the request or work of ctx holds, if it is of this
// key.
func (c Claim) operate(ctx context.Context, operation func() error) error {
	held := idempotency.ClaimFrom(ctx)
	if held == nil || held.Scope != c.Scope || held.Key != c.Key {
		return operation()
	}
	err := held.Operate(operation)
	if errors.Is(err, idempotency.ErrSecondOperation) {
		return fmt.Errorf("%w: %w", errMistake, err)
	}
	return err
}

// claiming keeps an outcome with the claim itself.
type claiming struct {
	Claim
	begins bool // of an operation at a provider
}

// keep puts the claim before all writes that are queued: keys are locked before what is written
// without having been locked.
func (c claiming) keep(tx *Tx, o Outcome, state string, header json.RawMessage) error {
	if o.kind == begun && !c.begins {
		return errBegun
	}
	if c.Key == "" {
		return nil
	}
	if o.kind == nothing {
		return errNoOutcome
	}
	var id, status, body any
	ttl, tombstone := c.TTL, c.TombstoneTTL
	switch o.kind {
	case done, refused:
		status, body = o.answer.Status, bodyOf(o.answer)
	case begun:
		id = o.id
	case refusedForNow:
		ttl, tombstone = 2*MaxRequestAge, 0
	}
	tx.writeKey(tx.keys.sql.claim, c.Scope, c.Key, c.Fingerprint[:], c.Operation, state, id, o.answer.keptResource(o.kind), status, header, body,
		c.ArrivedAt, ttl.Seconds(), tombstone.Seconds(), c.TraceParent)
	return nil
}

// claimSQL claims the key and keeps its answer, in one row version. It waits for a transaction that
// writes the same key. If the key is taken, status becomes NULL, which its column refuses, and
// nothing of the transaction is committed. A key whose time is up is claimed as if it had been
// purged. A refused key is claimed by a later attempt alone, and no key by an attempt that is older
// than refusals are kept: the comparison is made here because a replica may be paused between a
// comparison of its own and this statement. Nor is a key claimed by an attempt that is as far
// ahead: either its refusal would be kept too short, or it is this clock that is wrong.
var claimSQL = fmt.Sprintf(`-- name: ClaimKey :exec
INSERT INTO KEYS AS k (SCOPE, key, fingerprint, operation, status, resource_id, resource,
	response_status, response_headers, response_body, completed_at, attempted_at, expires_at, tombstone_until, trace_parent)
VALUES ($1, $2, $3, $4, CASE WHEN abs(extract(epoch FROM now() - $11::timestamptz)) < %d THEN $5::text END,
	$6, nullif($7::text, ''), $8, $9, $10, CASE WHEN $5::text IN ('completed', 'failed') THEN now() END,
	$11, now() + make_interval(secs => $12::float8), now() + make_interval(secs => nullif($13::float8, 0)), nullif($14::text, ''))
ON CONFLICT (SCOPE, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,
	status = CASE WHEN CASE k.status WHEN 'in_progress' THEN false
		WHEN 'refused' THEN k.attempted_at < excluded.attempted_at
		ELSE greatest(k.expires_at, k.tombstone_until) <= now() END THEN excluded.status END,
	resource_id = excluded.resource_id, resource = excluded.resource, response_status = excluded.response_status,
	response_headers = excluded.response_headers, response_body = excluded.response_body, created_at = now(),
	completed_at = excluded.completed_at, attempted_at = excluded.attempted_at, expires_at = excluded.expires_at,
	tombstone_until = excluded.tombstone_until, trace_parent = excluded.trace_parent,
	attempt = 1, taken_at = now(), due_at = NULL`, int(MaxRequestAge.Seconds()))

// Answer is what a client gets, and what is kept under the key. The authority does not look into
// it: it is replayed byte for byte.
type Answer struct {
	Status   int // of HTTP; from 200 to 499
	Header   map[string]string
	Body     []byte
	Resource string // path of what the request led to; may be empty
}

// Outcome is what a request led to. The zero Outcome leaves the key as it is.
type Outcome struct {
	kind   kind
	answer Answer
	id     string
}

type kind int

const (
	nothing kind = iota
	done
	refused
	refusedForNow
	begun
)

// Done is an effect and its answer, which is kept.
func Done(a Answer) Outcome { return Outcome{kind: done, answer: a} }

// Refused is a refusal for good, such as a declined card or "out of stock": the answer is kept.
// Changes of the transaction are committed with it, so that a decline can be written down. If one
// of its statements has failed, such as an INSERT that met a unique constraint, the answer is kept
// without any of them.
func Refused(a Answer) Outcome { return Outcome{kind: refused, answer: a} }

// RefusedForNow is a refusal that the client may correct, and send again under the same key. No
// change of the transaction is committed, and no older copy of the request can act any more. The
// answer is not kept: a caller that makes its own passes the zero one.
func RefusedForNow(a Answer) Outcome { return Outcome{kind: refusedForNow, answer: a} }

// Begun says that something was begun at a provider, and not settled. Its ID is a short text that
// is unique in the table and does not follow from the claim: make the key at the provider of it.
// The column resource_id holds it. It is for [Keys.Begin], [Keys.Operate] and [Keys.ServeProvider].
func Begun(id string) Outcome { return Outcome{kind: begun, id: id} }

// Result is the answer to a request.
type Result struct {
	Answer
	// Correctable says that this is a refusal for now: the answer is not kept, and the client may
	// correct the request.
	Correctable bool
	// Replayed says that the request was executed earlier and not now. The fields below are set
	// only then.
	Replayed    bool
	KeptFor     time.Duration // how much longer the answer is kept
	TraceParent string        // of the request that claimed the key, if it had one
}
