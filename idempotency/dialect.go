package idempotency

import (
	"cmp"
	"net/http"
	"strings"
)

// headerReplayed marks a replay at Stripe and in ACP.
const headerReplayed = "Idempotent-Replayed"

// stripeInUse is Stripe's code for a key whose first request is in progress.
const stripeInUse = "idempotency_key_in_use"

// Dialect is how an API writes what the middleware answers itself: names of headers, status codes,
// codes and the shape of errors. The zero value is this project's. What is done with a request is
// the same in each of them; dialects.md lists every rule, and those that are not offered because
// they would weaken the guarantee.
type Dialect struct {
	replayHeader string                // "": HeaderReplay
	echoesKey    bool                  // answers repeat the header with the key
	answers      map[string]statusCode // by our code; without an entry, our status and code
	write        func(http.ResponseWriter, *Error)
}

// statusCode is what a dialect writes instead of our status and code. 0 keeps our status.
type statusCode struct {
	status int
	code   string
}

// The dialects without a parameter.
var (
	// Stripe is that of Stripe's API v1: {"error":{"type","code","message"}}.
	Stripe = Dialect{
		replayHeader: headerReplayed, echoesKey: true, write: writeStripe,
		answers: map[string]statusCode{
			CodeKeyReused:  {status: http.StatusBadRequest},
			CodeInProgress: {code: stripeInUse},
		},
	}
	// ACP is that of the Agentic Commerce Protocol, section 6: {"type","code","message"}.
	ACP = Dialect{
		replayHeader: headerReplayed, echoesKey: true, write: writeACP,
		answers: map[string]statusCode{
			CodeKeyMissing: {code: "idempotency_key_required"},
			CodeKeyReused:  {code: "idempotency_conflict"},
			CodeInProgress: {code: "idempotency_in_flight"},
		},
	}
	// UCP is that of the Universal Commerce Protocol: {"code","content"}, and 409 for another body.
	UCP = Dialect{
		write:   writeUCP,
		answers: map[string]statusCode{CodeKeyReused: {status: http.StatusConflict, code: CodeKeyReused}},
	}
)

// IETF is the dialect of draft-ietf-httpapi-idempotency-key-header. Its problems link to
// documentation, the URL of the page on which the API describes its keys.
func IETF(documentation string) Dialect {
	return Dialect{write: func(w http.ResponseWriter, e *Error) { writeIETF(w, e, documentation) }}
}

// WithDialect replaces the names of headers and the error writer by those of a dialect. A handler
// that writes such errors itself uses [Dialect.WriteError], too.
func WithDialect(d Dialect) Option {
	return func(m *Middleware) { m.dialect, m.writeError = d, d.WriteError }
}

// WriteError writes an error in the dialect. Codes that it does not know stay as they are.
func (d Dialect) WriteError(w http.ResponseWriter, r *http.Request, e *Error) {
	if d.write == nil {
		WriteProblem(w, r, e)
		return
	}
	spoken := *e
	if answer, ok := d.answers[e.Code]; ok {
		spoken.Status, spoken.Code = cmp.Or(answer.status, e.Status), answer.code
	}
	d.write(w, &spoken)
}

func (d Dialect) replayName() string { return cmp.Or(d.replayHeader, HeaderReplay) }

// titles are those of the draft's examples (section 2.7).
var titles = map[string]string{
	CodeKeyMissing: "Idempotency-Key is missing",
	CodeKeyReused:  "Idempotency-Key is already used",
	CodeInProgress: "A request is outstanding for this Idempotency-Key",
}

func writeIETF(w http.ResponseWriter, e *Error, documentation string) {
	kind := "about:blank"
	if strings.HasPrefix(e.Code, "idempotency_") {
		kind = documentation
	}
	writeJSON(w, "application/problem+json", e, map[string]any{
		"type": kind, "title": cmp.Or(titles[e.Code], http.StatusText(e.Status)), "status": e.Status,
		"detail": e.Message, "code": e.Code,
	})
}

func writeStripe(w http.ResponseWriter, e *Error) {
	failure := map[string]any{"type": "invalid_request_error", "message": e.Message}
	switch {
	case e.Code == "", e.Code == stripeInUse:
		failure["type"] = "idempotency_error"
	case e.Status >= http.StatusInternalServerError:
		failure["type"] = "api_error"
	}
	if e.Code != "" { // a reused key has a type alone
		failure["code"] = e.Code
	}
	writeJSON(w, "application/json", e, map[string]any{"error": failure})
}

func writeACP(w http.ResponseWriter, e *Error) {
	kind := "invalid_request"
	switch {
	case e.Status == http.StatusServiceUnavailable:
		kind = "service_unavailable"
	case e.Status >= http.StatusInternalServerError:
		kind = "processing_error"
	}
	writeJSON(w, "application/json", e, map[string]any{"type": kind, "code": e.Code, "message": e.Message})
}

func writeUCP(w http.ResponseWriter, e *Error) {
	writeJSON(w, "application/json", e, map[string]any{"code": e.Code, "content": e.Message})
}
