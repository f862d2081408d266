package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/pages"
)

const problemType = "application/problem+json" // RFC 9457

// problem is what a client sees of an error. It is also the type of this package's own errors. Code
// and detail are safe to show; the cause is only logged.
type problem struct {
	status     int
	code       string // for programs; never changes
	detail     string // one sentence for people
	retryAfter time.Duration
	resource   string // path of what the problem is about; may be empty
	challenge  string // WWW-Authenticate (RFC 6750, section 3); may be empty
	cause      error
}

func (p problem) Error() string { return p.code + ": " + p.detail }

func (p problem) Unwrap() error { return p.cause }

// because is the problem with its cause.
func (p problem) because(cause error) problem {
	p.cause = cause
	return p
}

// The problems of the stages before the handlers. Validation makes its own.
var (
	errRouteNotFound    = problem{status: http.StatusNotFound, code: "route_not_found", detail: "There is nothing at this path."}
	errMethodNotAllowed = problem{status: http.StatusMethodNotAllowed, code: "method_not_allowed",
		detail: "This path does not have that method; the Allow header names those it has."}
	errUnauthorized = problem{status: http.StatusUnauthorized, code: checkout.ErrUnauthorized.Code, detail: checkout.ErrUnauthorized.Message}
	errInvalidToken = problem{status: http.StatusUnauthorized, code: errUnauthorized.code, detail: errUnauthorized.detail,
		challenge: `Bearer realm="oncepay", error="invalid_token"`}
	errReadOnly = problem{status: http.StatusForbidden, code: "api_key_read_only", detail: "This API key may only read.",
		challenge: `Bearer realm="oncepay", error="insufficient_scope"`}
	errSuspended = problem{status: http.StatusForbidden, code: "account_suspended",
		detail: "This account is suspended: nothing is executed, and no answer is returned again. Ask the operator."}
	errRateLimited = problem{status: http.StatusTooManyRequests, code: "rate_limited", retryAfter: rateWindow,
		detail: "Too many requests of this account. Slow down and retry."}
	errStrangers = problem{status: http.StatusTooManyRequests, code: errRateLimited.code, retryAfter: rateWindow,
		detail: "Too many requests with unknown API keys come from this address."}
	errTimeout = problem{status: http.StatusServiceUnavailable, code: "request_timeout", retryAfter: checkout.RetryHint,
		detail: "The request took too long. Retry with the same idempotency key."}
	errInternal = problem{status: http.StatusInternalServerError, code: "internal_error",
		detail: "Something went wrong on our side. Retry with the same idempotency key."}
)

// invalidRequest is a request that breaks the API description.
func invalidRequest(format string, args ...any) problem {
	return problem{status: http.StatusBadRequest, code: "invalid_request", detail: fmt.Sprintf(format, args...)}
}

func unsupportedMediaType(detail string) problem {
	return problem{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", detail: detail}
}

func bodyTooLarge(limit int64) problem {
	return problem{status: http.StatusRequestEntityTooLarge, code: idempotency.CodeBodyTooLarge,
		detail: "The request body must not exceed " + strconv.FormatInt(limit, 10) + " bytes."}
}

// statusOf is the HTTP status of each kind of domain error.
var statusOf = map[checkout.Kind]int{
	checkout.KindInvalid:       http.StatusBadRequest,
	checkout.KindUnauthorized:  http.StatusUnauthorized,
	checkout.KindDeclined:      http.StatusPaymentRequired,
	checkout.KindNotFound:      http.StatusNotFound,
	checkout.KindConflict:      http.StatusConflict,
	checkout.KindPrecondition:  http.StatusPreconditionFailed,
	checkout.KindUnprocessable: http.StatusUnprocessableEntity,
	checkout.KindUnavailable:   http.StatusServiceUnavailable,
}

// problemOf returns what a client sees of an error. It is the only place that decides this. An
// error that it does not know becomes errInternal.
func problemOf(err error) problem {
	var (
		own      problem
		domain   *checkout.Error
		keys     *idempotency.Error
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &domain) && statusOf[domain.Kind] != 0:
		return problem{status: statusOf[domain.Kind], code: domain.Code, detail: domain.Message, retryAfter: retryAfter(domain),
			resource: domain.Resource, cause: err}
	case errors.As(err, &keys):
		return problem{status: keys.Status, code: keys.Code, detail: keys.Message, retryAfter: keys.RetryAfter, cause: keys.Err}
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errTimeout.because(err)
	}
	return errInternal.because(err)
}

// retryAfter is the error's own hint, or grows with the time for which something has been in the
// way.
func retryAfter(e *checkout.Error) time.Duration {
	if e.Since.IsZero() {
		return e.RetryAfter
	}
	return idempotency.RetryAfter(e.Since, idempotency.DefaultLease)
}

// body is the problem on the wire. It depends on nothing but its arguments, because final errors
// are stored as what is sent.
func (p problem) body(requestID string) []byte {
	return encode(api.Problem{
		Type: pages.Problems + p.code, Title: http.StatusText(p.status), Status: p.status,
		Detail: p.detail, Code: p.code, Error: p.detail, Resource: optional(p.resource), RequestID: requestID,
	})
}

// fail answers with the problem of err. What comes this way was not kept by the authority, so it
// must not be kept under the key either: a replay that an outage of the store could turn into an
// effect would break the promise that a final 4xx never had one.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if claim := idempotency.ClaimFrom(r.Context()); claim != nil {
		claim.Release()
	}
	p := problemOf(err)
	s.logFailure(r.Context(), p)
	if p.status == http.StatusUnauthorized { // RFC 9110, section 11.6.1
		p.challenge = cmp.Or(p.challenge, `Bearer realm="oncepay"`)
	}
	if p.challenge != "" {
		w.Header().Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body(RequestID(r.Context()))) // the client may be gone
}

// logFailure logs causes, which clients never see. The cause of a 4xx is a mistake of the client. A
// client that is gone has caused its failure.
func (s *Server) logFailure(ctx context.Context, p problem) {
	level := slog.LevelDebug
	if p.status >= http.StatusInternalServerError && p.code != errOverloaded.code && !arrival.IsAbandoned(ctx) {
		level = slog.LevelError
	}
	s.log.LogAttrs(ctx, level, "request failed", slog.String("request_id", RequestID(ctx)),
		slog.String("code", p.code), slog.Any("cause", p.cause))
}

// encode renders a value of the API's types, which can't fail, with a newline for those who read it
// in a terminal.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("render %T: %v", v, err))
	}
	return append(text, '\n')
}
