package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Call says on whose behalf a command runs and under which idempotency key.
type Call struct {
	Account uuid.UUID
	Claim   *Claim // nil: the client sent no key, so retrying is the client's own risk
}

// Claim is the right to have one effect under an idempotency key. A key means
// nothing outside its account.
type Claim struct {
	Key         string
	Fingerprint [32]byte      // of the request; another one under the same key is refused
	Operation   string        // what the key was used for, such as "place_order"
	TTL         time.Duration // how long the reply is kept
	TraceParent string        // names the request for those who trace it; may be empty
}

// Reply is the answer to a command. It is rendered before the commit and stored
// by it, so what is stored is what was sent, byte for byte.
type Reply struct {
	Status   int
	Header   map[string]string
	Body     []byte
	Replayed bool // this reply was given before; the command ran earlier and not now
	// TraceParent names the request whose claim the reply answered, if it is
	// replayed and its claim told.
	TraceParent string
}

// Render makes the reply to an outcome: to the value, or to a final error. It
// must be pure, because a transaction may run it and then roll back.
type Render[T any] func(T, *Error) Reply
