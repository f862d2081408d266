package pspsim

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// maxBody is far above any honest request, and small enough to hold many.
	maxBody = 64 << 10
	// maxText bounds keys and references, as card providers commonly do.
	maxText = 255
)

// create takes a request for a charge or a refund to the ledger, and then answers as its token
// wants.
func (s *Server) create(r *http.Request, object string) (int, any, error) {
	var p params
	decodeErr := decode(r, &p)
	key, keyErr := idempotencyKey(r.Header)
	if err := cmp.Or(decodeErr, keyErr, p.validate(object)); err != nil {
		return 0, nil, err
	}
	if s.troubles.meets(answersFail) {
		return 0, nil, errFailFirst
	}
	p.Object = object
	e, err := s.ledger.submit(key, p)
	if err != nil {
		s.log.Warn("not done", "object", p.Object, "idempotency_key", key, "reference", p.Reference, "cause", err)
		return 0, nil, err
	}
	s.log.Info("arrived", "object", e.Object, "id", e.ID, "idempotency_key", key,
		"reference", e.Reference, "status", e.Status, "attempts", e.Attempts)
	if s.courier != nil {
		s.courier.deliver(e)
	}
	switch {
	case s.troubles.meets(answersFailLate):
		return 0, nil, errFailLate
	case s.troubles.meets(answersGarbage):
		return http.StatusOK, []byte(garbage), nil
	}
	token := tokens[e.Source]
	if e.Attempts == 1 && (token.hangUpFirst || s.troubles.outlast(r.Context(), bothHeld) != nil) {
		panic(http.ErrAbortHandler) // closes the connection without a byte
	}
	// Measured from the charge, so all arrivals of the key are answered together, and a late retry
	// at once. It ends early when the client goes away, or the server is being stopped.
	if wait.Pause(r.Context(), time.Until(e.CreatedAt.Add(token.delay))) != nil {
		panic(http.ErrAbortHandler)
	}
	switch {
	case e.Status == statusPending:
		return 0, nil, errFailFirst
	case e.Status == statusSucceeded:
		return http.StatusCreated, e, nil
	case e.Object == objectCharge:
		return http.StatusPaymentRequired, e, nil
	}
	return http.StatusUnprocessableEntity, e, nil
}

// list answers with what matches the query.
func (s *Server) list(r *http.Request, object string) (int, any, error) {
	query := r.URL.Query()
	asked := func(name, value string) bool { return !query.Has(name) || query.Get(name) == value }
	data := s.ledger.list(func(e *entry) bool {
		return e.Object == object && asked("key", e.IdempotencyKey) &&
			asked("reference", e.Reference) && asked("charge", e.Charge)
	})
	return http.StatusOK, map[string]any{"data": data}, nil
}

// replayEvents sends the events of a reference's charges, and of their refunds, once more: at once,
// the newest first, whether or not they were delivered. It answers with the status of each, 0 where
// there was none.
func (s *Server) replayEvents(r *http.Request) (int, any, error) {
	if s.courier == nil {
		return 0, nil, errNotFound
	}
	reference := r.URL.Query().Get("reference")
	settled := s.ledger.list(func(e *entry) bool {
		if e.Object == objectRefund {
			e = s.ledger.charges[e.Charge]
		}
		return e.Reference == reference
	})
	sent := []map[string]any{}
	for _, e := range slices.Backward(settled) {
		status, err := s.courier.post(r.Context(), e)
		s.log.Info("replayed", "id", eventID(e), "status", status, "cause", err)
		sent = append(sent, map[string]any{"id": eventID(e), "status": status})
	}
	return http.StatusOK, map[string]any{"data": sent}, nil
}

// decode reads exactly one JSON object with no unknown, duplicate or differently cased members.
func decode(r *http.Request, body any) error {
	if json.UnmarshalRead(r.Body, body, json.RejectUnknownMembers(true)) != nil {
		return errFields
	}
	return nil
}

func idempotencyKey(header http.Header) (string, error) {
	values := header.Values("Idempotency-Key")
	if len(values) != 1 || values[0] == "" || len(values[0]) > maxText {
		return "", invalid(fmt.Sprintf("One Idempotency-Key header of 1 to %d characters is required.", maxText))
	}
	return values[0], nil
}

var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// validate checks what a request said. What it asks for is told by its path.
func (p params) validate(object string) error {
	switch {
	case p.Object != "" || (object == objectCharge && p.Charge != "") || (object == objectRefund && p.Source != ""):
		return errFields
	case p.Amount <= 0:
		return invalid("amount must be above zero.")
	case !currency.MatchString(p.Currency):
		return invalid("currency must be three upper-case letters.")
	case p.Reference == "" || len(p.Reference) > maxText:
		return invalid(fmt.Sprintf("reference must have 1 to %d characters.", maxText))
	}
	return nil
}
