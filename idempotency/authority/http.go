package authority

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
)

// Codes of the answers that the adapter for HTTP writes itself, besides those of the middleware.
const (
	CodeKeyExpired   = "idempotency_key_expired"
	CodeNewerRefused = "newer_attempt_refused"
	CodeAbandoned    = "request_abandoned"
	CodeTooOld       = "request_too_old"
	CodeUnknown      = "outcome_unknown"
	CodeHeld         = "operation_held"
	CodeUnavailable  = "service_unavailable"
	CodeInternal     = "internal_error"
)

const (
	// retryHint is how long a client should wait after a 503: long enough for a failover to be
	// noticed, and short enough that it is still there.
	retryHint = 2 * time.Second
	// heldHint is how long it should wait for a person.
	heldHint = time.Minute
)

// adapter is what HTTP needs besides the keys.
type adapter struct {
	tombstones time.Duration
	writeError func(http.ResponseWriter, *http.Request, *idempotency.Error)
}

// WithTombstones sets [Claim].TombstoneTTL of the requests that [Keys.Serve] and
// [Keys.ServeProvider] answer. The default is none.
func WithTombstones(ttl time.Duration) Option {
	return func(k *Keys) { k.http.tombstones = ttl }
}

// WithErrorWriter replaces [idempotency.WriteProblem]. The error's cause may be a [Taken].
func WithErrorWriter(write func(http.ResponseWriter, *http.Request, *idempotency.Error)) Option {
	return func(k *Keys) { k.http.writeError = write }
}

// Serve answers a request by [Keys.Once]. The request comes through an [idempotency.Middleware],
// whose claim it takes. A request with an [idempotency.HeaderKey] that came through none is not
// executed: it gets 500.
func (k *Keys) Serve(w http.ResponseWriter, r *http.Request, operation string, run Run) {
	k.serve(w, r, operation, func(ctx context.Context, claim Claim) (Result, error) { return k.Once(ctx, claim, run) })
}

// ServeProvider answers a request by [Keys.Operate], like [Keys.Serve].
func (k *Keys) ServeProvider(w http.ResponseWriter, r *http.Request, operation string, begin Run, p Provider) {
	k.serve(w, r, operation, func(ctx context.Context, claim Claim) (Result, error) { return k.Operate(ctx, claim, begin, p) })
}

func (k *Keys) serve(w http.ResponseWriter, r *http.Request, operation string, execute func(context.Context, Claim) (Result, error)) {
	claim, err := k.claimOf(r, operation)
	var result Result
	if err == nil {
		result, err = execute(r.Context(), claim)
	}
	if err == nil && result.Status == 0 {
		err = errNoOutcome // of a request without a key, whose outcome is not kept
	}
	held := idempotency.ClaimFrom(r.Context())
	switch {
	case held == nil:
	case err != nil || result.Correctable:
		held.Release() // or a replay of the store could outlive what is decided here
	case result.Replayed:
		held.ReplayedFrom(result.TraceParent)
		held.KeepFor(result.KeptFor)
		held.Keep()
	default:
		held.Keep() // also a 404: what the authority keeps, the store keeps
	}
	if err != nil {
		k.fail(w, r, operation, problemOf(err))
		return
	}
	for name, value := range result.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(result.Status)
	_, _ = w.Write(result.Body) // the client may be gone
}

// claimOf is the claim of a request, unless no client waits for its answer any more. Without a key
// nothing else stops an older copy.
func (k *Keys) claimOf(r *http.Request, operation string) (Claim, error) {
	ctx := r.Context()
	claim := Claim{Operation: operation, TombstoneTTL: k.http.tombstones, ArrivedAt: arrival.Of(ctx)}
	if time.Since(claim.ArrivedAt) > MaxRequestAge {
		return claim, &idempotency.Error{Status: http.StatusServiceUnavailable, Code: CodeTooOld, RetryAfter: retryHint,
			Message: "The request waited too long before it was executed. Nothing was done. Send it again."}
	}
	claim.IsAbandoned = func() bool { return arrival.IsAbandoned(ctx) }
	if claim.IsAbandoned() {
		return claim, ErrAbandoned
	}
	if held := idempotency.ClaimFrom(ctx); held != nil {
		claim.Scope, claim.Key, claim.Fingerprint = held.Scope, held.Key, held.Fingerprint
		claim.TTL, claim.TraceParent = held.TTL, held.TraceParent
	} else if r.Header.Get(idempotency.HeaderKey) != "" {
		return claim, errNoMiddleware
	}
	return claim, nil
}

func (k *Keys) fail(w http.ResponseWriter, r *http.Request, operation string, e *idempotency.Error) {
	switch {
	case e.Status == http.StatusServiceUnavailable: // a retry may help
		k.log.WarnContext(r.Context(), "authority: request not decided", "operation", operation, "code", e.Code, "error", e.Err)
	case e.Status >= http.StatusInternalServerError:
		k.log.ErrorContext(r.Context(), "authority: request failed", "operation", operation, "code", e.Code, "error", e.Err)
	}
	k.http.writeError(w, r, e)
}

// problemOf is what a client sees of an error.
func problemOf(err error) *idempotency.Error {
	var own *idempotency.Error
	var taken *Taken
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &taken):
		return taken.problem()
	case errors.Is(err, ErrNoKey):
		return &idempotency.Error{Status: http.StatusBadRequest, Code: idempotency.CodeKeyMissing, Err: err,
			Message: idempotency.HeaderKey + " header is required"}
	case errors.Is(err, ErrAbandoned):
		return &idempotency.Error{Status: http.StatusServiceUnavailable, Code: CodeAbandoned, RetryAfter: retryHint, Err: err,
			Message: "The client closed the connection before the request was executed. Nothing was done."}
	case errors.Is(err, ErrUnknown):
		return &idempotency.Error{Status: http.StatusServiceUnavailable, Code: CodeUnknown, RetryAfter: retryHint, Err: err,
			Message: "The outcome is not known yet. Retry with the same idempotency key."}
	case errors.Is(err, idempotency.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &idempotency.Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, RetryAfter: retryHint, Err: err,
			Message: "The service is temporarily unavailable. Retry with the same idempotency key."}
	}
	return &idempotency.Error{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err,
		Message: "Something went wrong on our side. Retry with the same idempotency key."}
}

func (t *Taken) problem() *idempotency.Error {
	var e *idempotency.Error
	switch {
	case t.Held:
		e = &idempotency.Error{Status: http.StatusConflict, Code: CodeHeld, RetryAfter: heldHint,
			Message: "It is not known whether this request was executed. A person will find out; until then nothing is done again."}
	case t.Why == Reused:
		e = idempotency.KeyReused()
	case t.Why == Expired:
		e = &idempotency.Error{Status: http.StatusConflict, Code: CodeKeyExpired,
			Message: "This idempotency key was used before, and the answer is no longer kept. Nothing was done again."}
	case t.Why == Older:
		e = &idempotency.Error{Status: http.StatusConflict, Code: CodeNewerRefused,
			Message: "Another copy of this request, or a newer one with its idempotency key, was refused, so this one was not executed. Send it again if it is still wanted."}
	default:
		e = idempotency.InProgress(idempotency.RetryAfter(t.Since, idempotency.DefaultLease))
	}
	e.Err = t
	return e
}
