package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Call is the account and the idempotency key that a command runs under.
type Call struct {
	Account uuid.UUID
	Claim   *Claim // nil: the client sent no key, so retrying is the client's own risk
	Encode  Encode // makes the answer of this call
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
	// ArrivedAt is when the client attempt arrived, by the clock of the proxy or of the replica.
	// Once one was refused, no older one may act. The column is attempted_at.
	ArrivedAt time.Time
	// Attempt is the number of the attempt at what the key began at the payment provider, and the
	// fence: only the newest attempt may settle. A store sets it when it begins, takes or resumes
	// an operation, and compares it. 0: whichever is the newest.
	Attempt int32
}

// MaxRequestAge is how long ago a client attempt may have arrived when it claims its key. No client
// waits that long, and the refusal of a newer one is remembered for longer.
const MaxRequestAge = 30 * time.Minute

// Answer is what a command returns to its client. Its content is made before the commit and kept by
// it, so what is kept is what is sent, byte for byte.
type Answer struct {
	// Content is a matter between whoever serves the client and the [Store]. Nothing in this
	// package looks into it.
	Content  any
	Replayed bool // the command ran earlier and not now
}

// Encode makes the content of the answer to a value that a decision returned, or to a final error.
// It is bound to one request by whoever serves it. It must be pure, because a transaction may call
// it and then roll back.
type Encode func(value any, final *Error) (content any)
