package stripe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type object = map[string]any

// server answers as Stripe's API does, as far as this package uses it: PaymentIntents and refunds,
// lists in pages with the newest first, and an idempotency layer that keeps every answer from the
// moment the request was begun, 500s included (Stripe API reference, "Idempotent requests").
//
// Tokens choose what becomes of a charge: pm_visa, pm_declined, pm_processing, pm_500 (charged,
// and answered 500), pm_500_nothing, pm_busy (429), pm_expired_key (401), pm_misconfigured (400).
type server struct {
	t       *testing.T
	mu      sync.Mutex
	clock   func() time.Time
	intents []object // the oldest first
	refunds []object
	kept    map[string]*answer
}

type answer struct {
	form   string
	status int
	body   object
}

func newServer(t *testing.T) *server {
	return &server{t: t, clock: time.Now, kept: map[string]*answer{}}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		s.t.Errorf("form: %v", err)
	}
	key := r.Header.Get("Idempotency-Key")
	kept := s.kept[key]
	switch {
	case r.Method == http.MethodGet:
		status, body := s.read(r)
		write(w, status, body)
		return
	case kept != nil && kept.form != r.PostForm.Encode():
		write(w, 400, failed("idempotency_error", "", ""))
		return
	case kept != nil:
		w.Header().Set("Idempotent-Replayed", "true")
	default:
		status, body := s.act(r)
		kept = &answer{r.PostForm.Encode(), status, body}
		// What Stripe refuses before it executes the request is not kept.
		if status != 401 && status != 429 && status != 400 {
			s.kept[key] = kept
		}
	}
	write(w, kept.status, kept.body)
}

func write(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func failed(kind, code, param string) object {
	return object{"error": object{"type": kind, "code": code, "param": param, "message": "No such thing: 4242424242424242"}}
}

func (s *server) act(r *http.Request) (int, object) {
	amount, err := strconv.ParseInt(r.PostForm.Get("amount"), 10, 64)
	require.NoError(s.t, err)
	meta := object{KeyMember: r.PostForm.Get("metadata[" + KeyMember + "]"), ReferenceMember: r.PostForm.Get("metadata[" + ReferenceMember + "]")}
	if r.URL.Path == "/v1/refunds" {
		return s.refund(r.PostForm.Get("payment_intent"), amount, meta)
	}
	token := r.PostForm.Get("payment_method")
	switch token {
	case "pm_busy":
		return 429, failed("invalid_request_error", "rate_limit", "")
	case "pm_expired_key":
		return 401, failed("invalid_request_error", "api_key_expired", "")
	case "pm_misconfigured":
		return 400, failed("invalid_request_error", "parameter_unknown", "")
	case "pm_500_nothing":
		return 500, failed("api_error", "", "")
	case "pm_unknown":
		return 400, failed("invalid_request_error", "resource_missing", "payment_method")
	}
	intent := object{"id": fmt.Sprintf("pi_%d", len(s.intents)+1), "object": "payment_intent", "amount": amount, "amount_received": 0,
		"currency": r.PostForm.Get("currency"), "created": s.clock().Unix(), "metadata": meta, "status": "succeeded", "livemode": false}
	s.intents = append(s.intents, intent)
	switch token {
	case "pm_declined":
		declined := object{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}
		intent["status"], intent["last_payment_error"] = "requires_payment_method", declined
		return 402, object{"error": object{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds", "payment_intent": intent}}
	case "pm_processing":
		intent["status"] = "processing"
		return 200, intent
	}
	intent["amount_received"] = amount
	if token == "pm_500" {
		return 500, failed("api_error", "", "")
	}
	return 200, intent
}

func (s *server) refund(id string, amount int64, meta object) (int, object) {
	for _, intent := range s.intents {
		if intent["id"] != id {
			continue
		}
		left := intent["amount_received"].(int64)
		for _, f := range s.refunds {
			if f["payment_intent"] == id {
				left -= f["amount"].(int64)
			}
		}
		if left == 0 {
			return 400, failed("invalid_request_error", "charge_already_refunded", "")
		}
		if amount > left {
			return 400, failed("invalid_request_error", "", "amount")
		}
		refund := object{"id": fmt.Sprintf("re_%d", len(s.refunds)+1), "object": "refund", "amount": amount, "currency": intent["currency"],
			"payment_intent": id, "status": "succeeded", "metadata": meta, "created": s.clock().Unix()}
		s.refunds = append(s.refunds, refund)
		return 200, refund
	}
	return 404, failed("invalid_request_error", "resource_missing", "payment_intent")
}

func (s *server) read(r *http.Request) (int, object) {
	if id, one := strings.CutPrefix(r.URL.Path, "/v1/payment_intents/"); one {
		for _, intent := range s.intents {
			if intent["id"] == id {
				return 200, intent
			}
		}
		return 404, failed("invalid_request_error", "resource_missing", "intent")
	}
	all, of := s.intents, func(o object) bool {
		created := o["created"].(int64)
		return created >= s.number(r, "created[gte]") && created <= s.number(r, "created[lte]")
	}
	if r.URL.Path == "/v1/refunds" {
		all, of = s.refunds, func(o object) bool { return o["payment_intent"] == r.Form.Get("payment_intent") }
	}
	page, skip, more := []object{}, r.Form.Get("starting_after"), false
	for i := len(all) - 1; i >= 0; i-- {
		switch {
		case skip != "":
			if all[i]["id"] == skip {
				skip = ""
			}
		case !of(all[i]):
		case int64(len(page)) == s.number(r, "limit"):
			more = true
		default:
			page = append(page, all[i])
		}
	}
	return 200, object{"object": "list", "url": r.URL.Path, "has_more": more, "data": page}
}

func (s *server) number(r *http.Request, name string) int64 {
	n, err := strconv.ParseInt(r.Form.Get(name), 10, 64)
	if err != nil {
		s.t.Errorf("%s %s: %v", r.URL, name, err)
	}
	return n
}

func (s *server) moved() (charges, refunds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, intent := range s.intents {
		if intent["status"] == "succeeded" {
			charges++
		}
	}
	return charges, len(s.refunds)
}
