package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Call is the account and the idempotency key that a command runs under.
type Call struct {
	Account uuid.UUID
	Claim   *Claim // nil: the client sent no key, so retrying is the client's own risk
	// IsAbandoned reports whether the client has closed the connection. What has no key is not
	// executed then: a proxy may have passed the request on, and the client has its answer. nil:
	// never.
	IsAbandoned func() bool
	// Encode makes the answers of this call.
	Encode Encode
}

// Claim is the right to have one effect under an idempotency key. A key means nothing outside its
// account.
type Claim struct {
	Key         string
	Fingerprint [32]byte      // of the request; another one under the same key is refused
	Operation   string        // what the key was used for, such as "place_order"
	TTL         time.Duration // how long the answer is kept
	// TombstoneTTL is how long it is remembered that the key was used, for what moves money. Zero:
	// as long as the answer.
	TombstoneTTL time.Duration
	// AttemptedAt is when the client attempt began, by the clock of the proxy or of the replica.
	// Once one was refused, no older one may act.
	AttemptedAt time.Time
	TraceParent string // names the request in a trace; may be empty
	// Attempt is which attempt holds what the key began at the payment provider. A store sets it
	// when it begins, takes or resumes an operation, and compares it, as it does
	// [Operation].Attempt.
	Attempt int32
}

// MaxAttemptAge is how old an attempt may be when it claims its key. No client waits that long, and
// the refusal of a newer attempt is remembered for longer.
const MaxAttemptAge = 30 * time.Minute

// Answer is what a command returns to its client. It is rendered before the commit and stored by
// it, so what is stored is what is sent, byte for byte.
type Answer struct {
	Status   int
	Header   map[string]string
	Body     []byte
	Resource string // path of what the command led to; may be empty

	// Replayed says that the command ran earlier and not now. The fields below are set only then.
	Replayed    bool
	KeptFor     time.Duration // how much longer the answer is kept
	TraceParent string        // of the request that claimed the key, if it had one
}

// Encode makes the answer to an outcome: to the value that a decision returned, or to a final
// error. It is bound to one request by whoever serves it. It must be pure, because a transaction
// may call it and then roll back.
type Encode func(value any, final *Error) Answer
