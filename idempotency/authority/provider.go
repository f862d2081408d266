package authority

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultRemembers is how long most providers remember a key (Stripe API reference, "Idempotent
	// requests").
	DefaultRemembers = 24 * time.Hour
	// DefaultTimeout bounds what is asked of a provider in one attempt.
	DefaultTimeout = 45 * time.Second
	// settleGrace bounds the settlement. It runs even if the request's time is up: the provider has
	// answered, and writing that down is cheap.
	settleGrace = 5 * time.Second
	// graceMargin is what an attempt takes besides its timeout and its settlement.
	graceMargin = 10 * time.Second
	// firstPause and maxPause are between two attempts of the worker: short enough to notice soon
	// that the provider answers again.
	firstPause, maxPause = 4 * time.Second, time.Minute
)

// errHeld says that nothing may be sent any more, and that nothing can be looked up.
var errHeld = errors.New("the provider may have forgotten the key: the operation is held")

// Provider says how what was begun is asked for. Both functions make one request, under a key
// that follows from [Attempt].ID alone. They return how to settle, or an error if the outcome is
// unknown: whatever is not a clear answer of the provider is unknown.
type Provider struct {
	// Ask sends the request. The provider executes it once, however often it is sent. An
	// [Attempt].Operation says what was begun, if there are several kinds.
	Ask func(context.Context, Attempt) (settle Run, err error)
	// LookUp asks what became of the request, and has no effect. It returns [ErrNotFound] if the
	// provider knows nothing of it. nil: the provider cannot be asked.
	LookUp func(context.Context, Attempt) (settle Run, err error)
	// Remembers is how long the provider remembers a key. The last 24th part of it is a margin for
	// a request that is long under way. Zero: DefaultRemembers.
	Remembers time.Duration
	// Timeout bounds one attempt. A request's own deadline has to be at least five seconds longer,
	// so that it is answered. Zero: DefaultTimeout.
	Timeout time.Duration
}

// Operate executes an operation at a provider at most once under its key. begin commits what is
// begun, the provider is asked outside of any transaction, and the last transaction settles. A
// retry goes on where an earlier attempt stopped. After [ErrUnknown], so does [Keys.Resume].
func (k *Keys) Operate(ctx context.Context, claim Claim, begin Run, p Provider) (result Result, err error) {
	err = claim.operate(ctx, func() (err error) {
		result, err = k.operate(ctx, claim, begin, p)
		return err
	})
	return result, err
}

func (k *Keys) operate(ctx context.Context, claim Claim, begin Run, p Provider) (Result, error) {
	if p.Ask == nil {
		return Result{}, errNoAsk
	}
	attempt, result, err := k.beginOperation(ctx, claim, begin, nil)
	if err != nil || attempt == nil {
		return result, err
	}
	return k.drive(ctx, *attempt, p)
}

// Resume takes what is due, at most limit operations of whatever kind, asks the provider for all of
// it side by side, and returns how many it settled. Every replica calls it, once every few seconds.
// An unknown outcome is logged, and no error. A panic of a provider's function is an error, and its
// operation is due again later.
//
// What an attempt was taken for, and did not put off because its process died, is due 15 seconds
// after the provider's Timeout. This goes for attempts of Resume, too.
func (k *Keys) Resume(ctx context.Context, p Provider, limit int) (int, error) {
	if p.Ask == nil {
		return 0, errNoAsk
	}
	due, err := k.Due(ctx, cmp.Or(p.Timeout, DefaultTimeout)+settleGrace+graceMargin, limit)
	errs := make([]error, len(due))
	var settled atomic.Int64
	var group sync.WaitGroup
	for i, attempt := range due {
		group.Go(func() {
			defer func() {
				if bug := recover(); bug != nil { // the next process would have it, too
					errs[i] = fmt.Errorf("resume %s: %w: panic: %v\n%s", attempt.ID, errMistake, bug, debug.Stack())
				}
			}()
			var taken *Taken
			result, err := k.drive(ctx, attempt, p)
			switch {
			case err == nil && !result.Replayed:
				settled.Add(1)
			case errors.Is(err, ErrUnknown):
				k.log.WarnContext(ctx, "authority: outcome still unknown", "operation", attempt.Operation, "id", attempt.ID,
					"attempt", attempt.Number, "age", attempt.Age(), "error", err)
			case errors.As(err, &taken), err == nil:
			default:
				errs[i] = fmt.Errorf("resume %s: %w", attempt.ID, err)
			}
		})
	}
	group.Wait()
	return int(settled.Load()), errors.Join(append(errs, err)...)
}

// drive asks the provider and settles. What it learned is written down even if ctx ends meanwhile.
func (k *Keys) drive(ctx context.Context, a Attempt, p Provider) (Result, error) {
	settle, err := p.send(ctx, a)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleGrace)
	defer cancel()
	switch {
	case err == nil && settle == nil:
		err = errNoSettle
	case err == nil:
		return k.Settle(ctx, a, settle)
	}
	return k.unknown(ctx, a, err)
}

// unknown is for an attempt that did not learn the outcome: a retry, a worker or a provider's event
// may have settled meanwhile. Otherwise no attempt is running.
func (k *Keys) unknown(ctx context.Context, a Attempt, cause error) (Result, error) {
	found, err := k.row(ctx, a.Scope, a.Key)
	if err == nil {
		var taken *Taken
		result, err := found.replayFor(a)
		if err == nil || errors.As(err, &taken) && taken.Why == Expired {
			return result, err
		}
	}
	if errors.Is(cause, errHeld) {
		if err = k.Hold(ctx, a); err == nil {
			k.log.ErrorContext(ctx, "authority: operation held: a person has to find out, and settle it", "operation", a.Operation,
				"id", a.ID, "age", a.Age(), "error", cause)
		}
	} else {
		err = k.PutOff(ctx, a, pause(a.Number))
	}
	if err != nil { // it is due after the grace, then
		cause = errors.Join(cause, err)
	}
	return Result{}, fmt.Errorf("%w: %s: %w", ErrUnknown, a.ID, cause)
}

// pause is the time until the next attempt: a random part of a time that doubles, so that many
// operations are not retried together.
func pause(number int32) time.Duration {
	ceiling := firstPause
	for ; number > 1 && ceiling < maxPause; number-- {
		ceiling *= 2
	}
	ceiling = min(ceiling, maxPause)
	return ceiling/2 + rand.N(ceiling/2)
}

// send makes one attempt. What was begun is sent again for as long as the provider remembers its
// key, less a margin for a request that is long under way. Then it is only looked up, and what
// the provider does not have is held: a request that was sent before may still arrive.
func (p Provider) send(ctx context.Context, a Attempt) (Run, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, DefaultTimeout))
	defer cancel()
	remembers := cmp.Or(p.Remembers, DefaultRemembers)
	margin := remembers / 24
	switch age := a.Age(); {
	case time.Since(a.TakenAt).Abs() > MaxRequestAge:
		return nil, errors.New("the clocks of the database and of this process differ by half an hour")
	case age <= margin, p.LookUp == nil && age <= remembers-margin:
		return p.Ask(ctx, a)
	case p.LookUp == nil:
		return nil, errHeld
	case age <= remembers-margin:
		settle, err := p.LookUp(ctx, a)
		if errors.Is(err, ErrNotFound) {
			return p.Ask(ctx, a)
		}
		return settle, err
	default:
		settle, err := p.LookUp(ctx, a)
		if errors.Is(err, ErrNotFound) && age > remembers {
			err = fmt.Errorf("%w: %w", errHeld, err)
		}
		return settle, err
	}
}
