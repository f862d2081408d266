package pspsim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// maxBody is far above any honest request, and small enough to hold many.
	maxBody = 64 << 10
	// maxText bounds keys and references, as card providers commonly do.
	maxText = 255
	// maxPage is how many entries a page of a list has, unless the query's limit says fewer. A page
	// is then smaller than a body may be, if keys and references are short.
	maxPage = 100
)

type chargeRequest struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	Source    string `json:"source"`
}

type refundRequest struct {
	Charge    string `json:"charge"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

func (s *Server) createCharge(w http.ResponseWriter, r *http.Request) {
	var body chargeRequest
	err := decode(w, r, &body)
	s.submit(w, r, params{objectCharge, body.Amount, body.Currency, body.Reference, body.Source, ""}, err)
}

func (s *Server) createRefund(w http.ResponseWriter, r *http.Request) {
	var body refundRequest
	err := decode(w, r, &body)
	s.submit(w, r, params{objectRefund, body.Amount, body.Currency, body.Reference, "", body.Charge}, err)
}

// submit takes the request to the ledger and then answers as its token wants. The error is that of
// reading it.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, p params, unread error) {
	key, err := idempotencyKey(r.Header)
	err = cmp.Or(unread, err)
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	if s.troubles.answers(AnswersFail) {
		s.refuse(w, errFailFirst)
		return
	}
	e, err := s.ledger.submit(key, p)
	if err != nil {
		s.log.Warn("not done", "object", p.Object, "idempotency_key", key, "reference", p.Reference, "cause", err)
		s.refuse(w, err)
		return
	}
	s.log.Info("arrived", "object", e.Object, "id", e.ID, "idempotency_key", key,
		"reference", e.Reference, "status", e.Status, "attempts", e.Attempts)
	if s.courier != nil {
		s.courier.deliver(e)
	}
	switch {
	case s.troubles.answers(AnswersFailedLate):
		s.refuse(w, errFailLate)
	case s.troubles.answers(AnswersGarbage):
		_, _ = io.WriteString(w, garbage)
	default:
		s.answer(w, r, e)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, e entry) {
	token, _ := parseToken(e.Source) // a refund has none, and behaves
	if token.hangUpFirst && e.Attempts == 1 {
		panic(http.ErrAbortHandler) // closes the connection without a byte
	}
	// Measured from the charge, so all arrivals of the key are answered together, and a late retry
	// at once. It ends early when the client goes away, or the server is being stopped.
	if !pause(r.Context(), time.Until(e.CreatedAt.Add(token.delay))) {
		panic(http.ErrAbortHandler)
	}
	switch {
	case e.Status == statusPending:
		s.refuse(w, errFailFirst)
	case e.Status == statusSucceeded:
		s.write(w, http.StatusCreated, e)
	case e.Object == objectCharge:
		s.write(w, http.StatusPaymentRequired, e)
	default:
		s.write(w, http.StatusUnprocessableEntity, declinedRefund{e, problem{
			Code: e.DeclineCode, Message: "This refund is not possible; nothing was refunded.",
		}})
	}
}

// list answers with a page of what matches the query. A list of one page has no next_cursor.
func (s *Server) list(w http.ResponseWriter, query url.Values, object string) {
	limit, err := number(query, "limit", 1, maxPage, maxPage)
	from, cursorErr := number(query, "cursor", 0, math.MaxInt, 0)
	if err = cmp.Or(err, cursorErr); err != nil {
		s.refuse(w, err)
		return
	}
	data, next, err := s.ledger.page(from, limit, func(e *entry) bool {
		return e.Object == object && matches(query, "key", e.IdempotencyKey) && matches(query, "reference", e.Reference) &&
			(object == objectCharge || matches(query, "charge", e.Charge))
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	page := struct {
		Data       []entry `json:"data"`
		NextCursor string  `json:"next_cursor,omitempty"`
	}{Data: data}
	if next > 0 {
		page.NextCursor = strconv.Itoa(next)
	}
	s.write(w, http.StatusOK, page)
}

// number reads an integer of the query.
func number(query url.Values, name string, least, most, otherwise int) (int, error) {
	if !query.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, invalid(fmt.Sprintf("%s must be a number from %d to %d.", name, least, most))
	}
	return n, nil
}

// replayEvents sends the events of a reference's charges, and of their refunds, once more: at once,
// the newest first, whether or not they were delivered. It answers with the status of each, 0 where
// there was none.
func (s *Server) replayEvents(w http.ResponseWriter, r *http.Request) {
	if s.courier == nil {
		s.refuse(w, errNotFound)
		return
	}
	reference := r.URL.Query().Get("reference")
	settled, err := s.ledger.list(func(e *entry) bool {
		if e.Object == objectRefund {
			e = s.ledger.charges[e.Charge]
		}
		return e.Reference == reference
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	type sent struct {
		ID     string `json:"id"`
		Status int    `json:"status"`
	}
	data := []sent{}
	for _, e := range slices.Backward(settled) {
		status, err := s.courier.post(r.Context(), e)
		s.log.Info("replayed", "id", eventID(e), "status", status, "cause", err)
		data = append(data, sent{eventID(e), status})
	}
	s.write(w, http.StatusOK, struct {
		Data []sent `json:"data"`
	}{data})
}

// matches reports whether the query asks for value, or does not care.
func matches(query url.Values, name, value string) bool {
	return !query.Has(name) || query.Get(name) == value
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if err := s.ledger.check(); err != nil {
		s.refuse(w, err)
		return
	}
	s.write(w, http.StatusOK, map[string]string{"status": "ok"})
}

// decode reads exactly one JSON object with no unknown, duplicate or differently cased members.
func decode(w http.ResponseWriter, r *http.Request, body any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return errTooLarge
	}
	if err == nil {
		err = json.Unmarshal(raw, body, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return invalid("The body must be one JSON object with exactly the documented fields.")
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

func (p params) validate() error {
	switch {
	case p.Amount <= 0:
		return invalid("amount must be above zero.")
	case !currency.MatchString(p.Currency):
		return invalid("currency must be three upper-case letters.")
	case p.Reference == "" || len(p.Reference) > maxText:
		return invalid(fmt.Sprintf("reference must have 1 to %d characters.", maxText))
	}
	return nil
}
