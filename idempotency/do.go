package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"
)

// Do runs work under a key, as [Middleware] runs a handler: for jobs, messages and tool calls,
// whatever repeats them. It returns what work returned. While another attempt with the key is in
// progress it waits, up to [Policy].Wait.
//
//	work returns       kept   Do with the same key and request, later
//	a result           yes    returns it, from its JSON (encoding/json)
//	a [Final] error    yes    returns a [FinalError] with its text
//	any other error    no     runs work again
//	never: it panics   no     runs work again
//
// The request is what must not differ between two calls with one key: any value that marshals
// into JSON, or a []byte as it is. Without one, pass nil. It is compared, and not stored. Do
// returns an error without running work if JSON does not write all of it: a field that is not
// exported, two fields of one name, text that is not UTF-8, or fields beside an embedded one whose
// MarshalJSON the type has taken.
//
// A retry returns the value that the first call returned, but for fields tagged json:"-", or an
// error: Do reads each result from its JSON, and does not keep one that comes back as another
// value. Examples are an int or a struct behind an interface, which come back as a float64 and a
// map. A nil slice and an empty one count as the same. Types with MarshalJSON and UnmarshalJSON, or
// MarshalText and UnmarshalText, are trusted to be read as they were written. A type with fields
// that are not exported, and without MarshalJSON, is no result: Do returns an error without running
// work.
//
// Do returns an [Error] instead if work did not run: [CodeInProgress] with the time after which to
// ask again, [CodeKeyReused] for another request, [CodeStoreUnavailable], or [CodeResponseNotKept]
// if the result was not kept: it is larger than 1 MiB, or JSON does not hold it. The first call
// returns such a result nevertheless.
//
// The context of work ends with ctx, unless the keys are [Keys].Detached, and when the lease is
// lost, or may be about to end: [context.Cause] is then [ErrLost] or [ErrUnavailable], and the
// error that Do returns wraps it. A result is returned although its record could not be completed;
// [Keys].Observe is told. As with a handler, only an authority rules out a second effect: work
// finds its [Claim] in its context.
func Do[T any](ctx context.Context, keys *Keys, key string, request any, work func(context.Context) (T, error)) (T, error) {
	var none T
	if err := checkResult(reflect.TypeFor[T]()); err != nil {
		return none, err
	}
	c, err := keys.begin(ctx, key, request)
	if err != nil {
		return none, err
	}
	existing, err := c.holder.take(ctx)
	if err == nil && existing.isInProgress() {
		existing, _ = c.wait(ctx, existing, c.policy.Wait)
	}
	switch {
	case err == nil && existing != nil:
		return keptResult[T](ctx, keys, c, existing)
	case err == nil || c.failsOpen(ctx, err):
		return runWork(ctx, keys, c, work)
	}
	return none, keys.refuse(ctx, c, ResultUnavailable, storeUnavailable(err))
}

// runWork holds the key while work runs.
func runWork[T any](ctx context.Context, keys *Keys, c *call, work func(context.Context) (T, error)) (result T, err error) {
	limit := keys.Policy.Deadline
	if keys.Detached {
		ctx, limit = context.WithoutCancel(ctx), c.policy.Deadline
	}
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	ctx, cancel := c.start(ctx)
	defer cancel(nil)
	defer func() {
		if !c.returned {
			c.finish(ctx, c.fateOf(0, nil), Response{})
		}
		keys.observe(ctx, c.concludeWork())
	}()
	result, err = perform(ctx, c, work)
	c.returned = true
	response, lost := responseOf(&result, err)
	if lost != nil {
		c.holder.log.WarnContext(ctx, "idempotency: result not kept", "scope", c.claim.Scope, "key", c.claim.Key, "error", lost)
	}
	c.finish(ctx, c.fateOf(response.StatusCode, nil), c.limited(response))
	if err != nil && c.check.Err != nil {
		err = errors.Join(err, c.check.Err)
	}
	return result, err
}

func perform[T any](ctx context.Context, c *call, work func(context.Context) (T, error)) (T, error) {
	defer func(began time.Time) { c.working = time.Since(began) }(time.Now())
	return work(ctx)
}

// responseOf returns what is kept, in the form of an answer over HTTP, and why a result is not. An
// error that is not final has no status.
func responseOf[T any](result *T, err error) (kept Response, lost error) {
	defer func() {
		if bug := recover(); bug != nil { // of a MarshalJSON; the work is done
			kept, lost = Response{StatusCode: http.StatusOK, BodyOmitted: true}, fmt.Errorf("write the result as JSON: panic: %v", bug)
		}
	}()
	var final *FinalError
	switch {
	case errors.As(err, &final):
		return Response{StatusCode: http.StatusUnprocessableEntity, Body: []byte(final.Message)}, nil
	case err != nil:
		return Response{}, nil
	}
	body, err := json.Marshal(result)
	if err == nil {
		err = checkKept(result, body)
	}
	return Response{StatusCode: http.StatusOK, Body: body, BodyOmitted: err != nil}, err
}

// keptResult returns from the record that is there.
func keptResult[T any](ctx context.Context, keys *Keys, c *call, existing *Record) (result T, err error) {
	verdict, refusal := c.judge(existing)
	if refusal != nil {
		if verdict == ResultNotKept {
			refusal.Message = "The work was done, but its result was too large to be kept, or does not come back from JSON."
		}
		return result, keys.refuse(ctx, c, verdict, refusal)
	}
	keys.observe(ctx, c.conclude(ResultReplay))
	if existing.Status == StatusFailed {
		return result, &FinalError{Message: string(existing.Response.Body)}
	}
	if err = json.Unmarshal(existing.Response.Body, &result); err != nil {
		return result, fmt.Errorf("idempotency: read the kept result: %w", err)
	}
	return result, nil
}

// FinalError is an error that [Do] keeps: work must not run again with this key.
type FinalError struct {
	Message string // is kept, and must not contain secrets
	Err     error  // the cause; nil if the error was kept
}

// Final makes an error final, and returns nil for nil. Its text is kept, and not its type: what a
// caller has to tell apart later belongs into the result.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &FinalError{Message: err.Error(), Err: err}
}

// Error implements error.
func (e *FinalError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *FinalError) Unwrap() error { return e.Err }
