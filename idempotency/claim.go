package idempotency

import (
	"context"
	"sync/atomic"
	"time"
)

// Claim is what a handler, or the work of [Do], knows of the key that it holds. It takes the
// claim from its context and passes it to the code that writes the change. Its methods may be
// called from any goroutine until the handler or the work returns.
type Claim struct {
	Scope, Key  string
	Fingerprint Fingerprint
	Owner       Owner
	TTL         time.Duration // how long the answer is kept, from the arrival of the request
	// Bypassed says that the key was not acquired: the store could not be reached and the policy is
	// FailOpen, so only the handler's own authority protects this key now, or the request is
	// rejected by [Middleware.Reject].
	Bypassed bool

	// TraceParent identifies this request for [Claim.ReplayedFrom]. It is empty without
	// [WithTraceParent].
	TraceParent string

	fate                atomic.Int32 // a Fate
	replayed, operating atomic.Bool
	omitted             atomic.Bool
	original            atomic.Pointer[string]        // the TraceParent of what is replayed
	keepFor             atomic.Pointer[time.Duration] // nil: as long as the TTL says
}

type claimKey struct{}

// ClaimFrom returns the claim of the request or work that ctx belongs to, or nil if the request
// has no key or its route no policy.
func ClaimFrom(ctx context.Context) *Claim {
	claim, _ := ctx.Value(claimKey{}).(*Claim)
	return claim
}

// Release says that this answer must not be kept, whatever its status: the client may correct
// its request, or try it again, with the same key. It has no effect once the response has
// passed the limit of [WithMaxResponse]. Of Release, [Claim.Keep] and [Claim.Unknown] the last call
// counts.
func (c *Claim) Release() { c.decide(FateReleased) }

// Keep says that this answer is kept, whatever the policy says of its status, because an authority
// keeps it or the handler found what it says. It has no effect on a status that is not from 200 to
// 499, nor on an error that [Do] gets.
func (c *Claim) Keep() { c.decide(FateKept) }

// Omit says that the request had its effect, and that its answer cannot be kept, for example
// because middleware further out writes it: a retry gets 409 [CodeResponseNotKept]. It has no
// effect on [Do].
func (c *Claim) Omit() { c.omitted.Store(true) }

// Unknown says that nobody knows whether the request has had its effect, or still will: the key
// stays in progress for [Policy].UnknownFor.
func (c *Claim) Unknown() { c.decide(FateUnknown) }

// Fate is what the last call of [Claim.Release], [Claim.Keep] or [Claim.Unknown] said.
func (c *Claim) Fate() Fate { return Fate(c.fate.Load()) }

func (c *Claim) decide(fate Fate) { c.fate.Store(int32(fate)) }

// Operate runs the one operation that an authority commits under this claim, and returns its error.
// A second one would have the same key, and get the first one's answer: it returns
// [ErrSecondOperation] instead. After an error Operate may be called again.
func (c *Claim) Operate(operation func() error) error {
	if !c.operating.CompareAndSwap(false, true) {
		return ErrSecondOperation
	}
	err := operation()
	c.operating.Store(err == nil)
	return err
}

// isOf reports whether the claim, which may be nil, is of this key.
func (c *Claim) isOf(scope, key string) bool { return c != nil && c.Scope == scope && c.Key == key }

// Replayed says that the authority had kept this answer. It is sent with X-Idempotent-Replay:
// true, put back into the store, and counts as a replay. Call it before writing the response,
// and call [Claim.KeepFor], too: the store must not keep the answer longer than the authority.
func (c *Claim) Replayed() { c.replayed.Store(true) }

// ReplayedFrom is [Claim.Replayed] for an authority that also kept the TraceParent of the
// request whose answer this was. The observers of later replays get it.
func (c *Claim) ReplayedFrom(traceParent string) {
	c.original.Store(&traceParent)
	c.Replayed()
}

// KeepFor limits how long the answer is kept, for example to what remains of the time for
// which the authority keeps it. It counts from the arrival of the request, like the policy's
// TTL, so that no pause between the authority's reply and this call extends it. It never
// extends the TTL. If nothing remains, the answer is not kept.
func (c *Claim) KeepFor(remaining time.Duration) { c.keepFor.Store(&remaining) }

// origin is the TraceParent that a finished record keeps.
func (c *Claim) origin() string {
	if original := c.original.Load(); original != nil {
		return *original
	}
	return c.TraceParent
}
