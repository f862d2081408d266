package pspsim

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
)

// refusal is an answer without an entry. Nothing was charged by the request, except that after a
// 500 "journal_failed" it is unknown.
type refusal struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

var (
	errFailFirst = &refusal{500, "internal_error", "Something failed before anything was charged. Try again."}
	errFailLate  = &refusal{500, "internal_error", "Something failed."}
	errNotFound  = &refusal{404, "not_found", "There is nothing at this path."}
	errJournal   = &refusal{500, "journal_failed", "The provider can't write its journal."}

	errFields        = invalid("The body must be one JSON object with exactly the documented fields, and at most 64 KiB.")
	errKeyReused     = &refusal{409, "idempotency_key_reused", "This Idempotency-Key arrived before with other parameters."}
	errUnknownToken  = &refusal{400, "unknown_token", "There is no such card token."}
	errUnknownCharge = &refusal{404, "unknown_charge", "There is no such charge."}
)

func invalid(message string) error { return &refusal{400, "invalid_request", message} }

// handler answers a request with a status and a body, or with an error. One that is no refusal is
// of the journal.
type handler func(*http.Request) (status int, body any, err error)

func (s *Server) answering(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // net/http needs the body of its own request for Expect: 100-continue
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, body, err := handle(r)
		if err != nil {
			known, ok := errors.AsType[*refusal](err)
			if !ok {
				known = errJournal
			}
			status, body = known.status, map[string]any{"error": known}
		}
		raw, ok := body.([]byte) // garbage
		if !ok {
			raw, _ = json.Marshal(body) // what was decoded or journaled can be encoded
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := w.Write(append(raw, '\n')); err != nil {
			s.log.Warn("answer not sent", "cause", err)
		}
	}
}
