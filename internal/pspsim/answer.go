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

// declinedRefund says both what became of the refund and why.
type declinedRefund struct {
	entry
	Problem problem `json:"error"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

var (
	errTooLarge  = &refusal{http.StatusRequestEntityTooLarge, problem{"body_too_large", "The body must not exceed 64 KiB."}}
	errFailFirst = &refusal{http.StatusInternalServerError, problem{"internal_error", "Something failed before anything was charged. Try again."}}
	errFailLate  = &refusal{http.StatusInternalServerError, problem{"internal_error", "Something failed."}}
	errNotFound  = &refusal{http.StatusNotFound, problem{"not_found", "There is nothing at this path."}}
	errMethod    = &refusal{http.StatusMethodNotAllowed, problem{"method_not_allowed", "This path does not take this method."}}
)

func invalid(message string) error {
	return &refusal{http.StatusBadRequest, problem{"invalid_request", message}}
}

// refusalOf is the one table from errors to answers.
func refusalOf(err error) *refusal {
	if known := (*refusal)(nil); errors.As(err, &known) {
		return known
	}
	switch {
	case errors.Is(err, errKeyReused):
		return &refusal{http.StatusConflict, problem{"idempotency_key_reused", "This Idempotency-Key arrived before with other parameters."}}
	case errors.Is(err, errUnknownToken):
		return &refusal{http.StatusBadRequest, problem{"unknown_token", "There is no such card token."}}
	case errors.Is(err, errUnknownCharge):
		return &refusal{http.StatusNotFound, problem{"unknown_charge", "There is no such charge."}}
	}
	return &refusal{http.StatusInternalServerError, problem{"journal_failed", "The provider can't write its journal."}}
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	known := refusalOf(err)
	s.write(w, known.status, struct {
		Problem problem `json:"error"`
	}{known.problem})
}

func (s *Server) write(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		s.log.Error("encode answer", "cause", err)
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(raw, '\n')); err != nil {
		s.log.Warn("answer not sent", "cause", err)
	}
}
