package idempotency

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Keys are the keys of one kind of work, for [Do]. Set its fields before the first use; after
// that it is safe for concurrent use. It must not be copied.
type Keys struct {
	// Store keeps the records. It is required.
	Store Store
	// Scope is whose keys these are, such as a queue or a tool. A key means nothing outside its
	// scope. It is required; see also [Keys.In].
	Scope string
	// Policy has the same meaning as for handlers, with one difference: without a Deadline, work
	// may take as long as it likes. Required, MaxWait, Headers and Fate have no effect.
	Policy Policy
	// Detached has work go on when the context of Do ends, until Policy.Deadline, or for
	// [DefaultDeadline]: its result is kept for a caller that comes back. Waiting ends with the
	// context nevertheless.
	Detached bool
	// Observe, if set, is called once for each call of Do: before it returns. It is called from
	// many goroutines at once and must be quick.
	Observe func(context.Context, Check)
	// TraceParent, if set, is what [WithTraceParent] is for handlers.
	TraceParent func(context.Context) string
	// Log is where failures are logged that the caller does not get; [slog.Default] if it is nil.
	Log *slog.Logger

	once   sync.Once
	shared *keeper
}

// In returns the same keys in another scope, for example of one tenant.
func (k *Keys) In(scope string) *Keys {
	return &Keys{
		Store: k.Store, Scope: scope, Policy: k.Policy, Detached: k.Detached,
		Observe: k.Observe, TraceParent: k.TraceParent, Log: k.Log, shared: k.keeper(),
	}
}

// Wait returns when the steps that outlived their calls have ended, after a few seconds at most.
// Call it after the last Do, and before closing the store. It is also for the keys of [Keys.In].
func (k *Keys) Wait() { k.keeper().background.wait() }

// keeper panics if a required field is missing: such a program is wrong from its first call on.
func (k *Keys) keeper() *keeper {
	k.once.Do(func() {
		switch {
		case k.Store == nil:
			panic("idempotency: Keys needs a Store")
		case k.shared != nil:
			return
		}
		k.shared = newKeeper(k.Store)
		if k.Log != nil {
			k.shared.log = k.Log
		}
		k.shared.background.init(k.shared.log)
	})
	return k.shared
}

// begin makes the call of one use of a key.
func (k *Keys) begin(ctx context.Context, key string, request any) (*call, error) {
	if k.Scope == "" {
		panic("idempotency: Keys needs a Scope")
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("idempotency: %w", context.Cause(ctx))
	}
	c := &call{policy: k.Policy.withDefaults(), began: time.Now(), check: Check{Key: key, Scope: k.Scope}}
	c.policy.Fate = nil
	if err := keyName("The key").check(key); err != nil {
		return nil, k.refuse(ctx, c, ResultMalformed, err)
	}
	content, err := contentOf(request)
	if err != nil {
		return nil, err
	}
	claim := &Claim{
		Scope: k.Scope, Key: key, Owner: NewOwner(), TTL: c.policy.TTL,
		Fingerprint: fingerprintOfContent(content, c.policy.ExcludedFields),
	}
	if k.TraceParent != nil {
		claim.TraceParent = k.TraceParent(ctx)
	}
	c.prepare(k.keeper(), claim)
	return c, nil
}

func (k *Keys) refuse(ctx context.Context, c *call, result Result, e *Error) error {
	if c.check.Err == nil {
		c.check.Err = e.Err
	}
	k.observe(ctx, c.conclude(result))
	return e
}

func (k *Keys) observe(ctx context.Context, check Check) {
	if k.Observe != nil {
		k.Observe(ctx, check)
	}
}
