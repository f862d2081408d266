package pspsim

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
)

// refusal is an answer without an entry. Nothing was charged by the request, except that after a
// 500 "journal_failed" it is unknown.
type refusal struct {
	status int
	problem
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

var (
	errTooLarge  = &refusal{http.StatusRequestEntityTooLarge, problem{"body_too_large", "The body must not exceed 64 KiB."}}
	errFailFirst = &refusal{http.StatusInternalServerError, problem{"internal_error", "Something failed before anything was charged. Try again."}}
	errFailLate  = &refusal{http.StatusInternalServerError, problem{"internal_error", "Something failed."}}
	errNotFound  = &refusal{http.StatusNotFound, problem{"not_found", "There is nothing at this path."}}
	errMethod    = &refusal{http.StatusMethodNotAllowed, problem{"method_not_allowed", "This path does not take this method."}}
	errJournal   = &refusal{http.StatusInternalServerError, problem{"journal_failed", "The provider can't write its journal."}}

	errFields        = invalid("The body must be one JSON object with exactly the documented fields.")
	errKeyReused     = &refusal{http.StatusConflict, problem{"idempotency_key_reused", "This Idempotency-Key arrived before with other parameters."}}
	errUnknownToken  = &refusal{http.StatusBadRequest, problem{"unknown_token", "There is no such card token."}}
	errUnknownCharge = &refusal{http.StatusNotFound, problem{"unknown_charge", "There is no such charge."}}
)

func invalid(message string) error {
	return &refusal{http.StatusBadRequest, problem{"invalid_request", message}}
}

// handler answers a request with a status and a body, or with an error. One that is no refusal is
// of the journal.
type handler func(*http.Request) (status int, body any, err error)

func (s *Server) answering(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, body, err := handle(r)
		if err != nil {
			known, ok := errors.AsType[*refusal](err)
			if !ok {
				known = errJournal
			}
			status, body = known.status, map[string]problem{"error": known.problem}
		}
		raw, ok := body.([]byte) // garbage
		if !ok {
			if raw, err = json.Marshal(body); err != nil {
				s.log.Error("encode answer", "cause", err)
				panic(http.ErrAbortHandler)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if _, err := w.Write(append(raw, '\n')); err != nil {
			s.log.Warn("answer not sent", "cause", err)
		}
	}
}
