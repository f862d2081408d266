package idempotency

import (
	"context"
	"sync/atomic"
	"time"
)

// Claim is a handler's view of the key that its request holds. A handler takes
// it from the request's context and passes it on to what writes the change.
// Its methods may be called from any goroutine until the handler returns.
type Claim struct {
	Scope, Key  string
	Fingerprint Fingerprint
	Owner       Owner
	TTL         time.Duration // how long the answer is to be kept
	// Bypassed says that the store couldn't answer and the policy is FailOpen:
	// nobody but the handler's own authority guards this key now.
	Bypassed bool

	// TraceParent names this request for [Claim.ReplayedFrom]. It is empty
	// without [WithTraceParent].
	TraceParent string

	released, replayed atomic.Bool
	original           atomic.Pointer[string] // the TraceParent of what is replayed
}

type claimKey struct{}

// ClaimFrom gives the claim of the request that ctx belongs to, or nil when it
// carries no key or its route has no policy.
func ClaimFrom(ctx context.Context) *Claim {
	claim, _ := ctx.Value(claimKey{}).(*Claim)
	return claim
}

// Release says that this answer must not be kept, whatever its status: the
// client may correct its request, or try it again, with the same key. It comes
// too late for a response that has already passed the limit of
// [WithMaxResponse].
func (c *Claim) Release() { c.released.Store(true) }

// Replayed says that this answer is one that the authority had kept. It is sent
// with X-Idempotent-Replay: true, put back into the store, and counts as a
// replay. Call it before writing the response.
func (c *Claim) Replayed() { c.replayed.Store(true) }

// ReplayedFrom is [Claim.Replayed] by an authority that kept the TraceParent of
// the request whose answer this was, too. Later replays tell of that request.
func (c *Claim) ReplayedFrom(traceParent string) {
	c.original.Store(&traceParent)
	c.Replayed()
}

// origin is the TraceParent that a finished record keeps.
func (c *Claim) origin() string {
	if original := c.original.Load(); original != nil {
		return *original
	}
	return c.TraceParent
}
