// Package stripetest is a server that answers as Stripe's API does, as far as our gateway uses it:
// PaymentIntents, refunds, lists in pages, events, and an idempotency layer that keeps every answer
// from the moment the request was begun, 500s included (Stripe API reference, "Idempotent
// requests").
package stripetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

// Object is one of Stripe's objects, such as a PaymentIntent.
type Object = map[string]any

// The statuses that a test may set.
const (
	Succeeded  = "succeeded"
	Pending    = "pending"
	processing = "processing"
)

// Server is safe for concurrent use. Payment methods choose what becomes of a charge: pm_visa,
// pm_declined, pm_authentication (its owner has to confirm), pm_processing, pm_lost (charged, and
// the connection ends without an answer), pm_500 (charged, and answered 500), pm_500_nothing,
// pm_busy (429), pm_expired_key (401), pm_misconfigured (400), pm_unknown (400), pm_no_intent
// (402 before there is a PaymentIntent).
type Server struct {
	// Working is called while a request with an idempotency key is at work and another one with
	// the key is refused; nil does nothing. It is set before the first request.
	Working func()

	t       testing.TB
	mu      sync.Mutex
	intents []Object // the oldest first
	refunds []Object
	events  []Event
	refund  string // the status of the next refunds
	kept    map[string]*answer
	asked   []string
}

// Event is what Stripe sends to an endpoint for webhooks.
type Event struct {
	Kind string // such as payment_intent.succeeded
	Body []byte
}

type answer struct {
	form   string
	done   bool
	status int
	body   Object
}

// New returns a server that has nothing. Requests that Stripe does not know fail the test.
func New(t testing.TB) *Server {
	return &Server{t: t, refund: Succeeded, kept: map[string]*answer{}}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		s.t.Errorf("form: %v", err)
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodGet {
		status, body := s.read(r)
		Write(w, status, body)
		return
	}
	key, form := r.Header.Get("Idempotency-Key"), r.PostForm.Encode()
	kept := s.kept[key]
	switch {
	case kept == nil:
		kept = &answer{form: form}
		s.kept[key] = kept
		s.work()
		kept.status, kept.body = s.act(r)
		kept.done = true
		if status := kept.status; status == 400 || status == 401 || status == 429 {
			delete(s.kept, key) // Stripe refuses these before it executes the request
		}
		if r.PostForm.Get("payment_method") == "pm_lost" {
			panic(http.ErrAbortHandler)
		}
	case kept.form != form:
		Write(w, 400, Failed("idempotency_error", "", ""))
		return
	case !kept.done:
		Write(w, 409, Failed("idempotency_error", "idempotency_key_in_use", ""))
		return
	default:
		w.Header().Set("Idempotent-Replayed", "true")
	}
	Write(w, kept.status, kept.body)
}

func (s *Server) work() {
	if s.Working == nil {
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	s.Working()
}

// Write answers as Stripe does.
func Write(w http.ResponseWriter, status int, body Object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Failed is the body of an error. Its message repeats what the client sent, as Stripe's may.
func Failed(kind, code, param string) Object {
	return Object{"error": Object{"type": kind, "code": code, "param": param, "message": "No such thing: 4242424242424242"}}
}

func (s *Server) act(r *http.Request) (int, Object) {
	amount := s.number(r, "amount")
	meta := Object{}
	for name, values := range r.PostForm {
		if key, ok := strings.CutPrefix(name, "metadata["); ok {
			meta[strings.TrimSuffix(key, "]")] = values[0]
		}
	}
	if problem := amountProblem(r.PostForm.Get("currency"), amount); problem != nil {
		return 400, problem
	}
	if r.URL.Path == "/v1/refunds" {
		return s.actRefund(r.PostForm.Get("payment_intent"), amount, meta)
	}
	method := r.PostForm.Get("payment_method")
	switch method {
	case "pm_busy":
		return 429, Failed("invalid_request_error", "rate_limit", "")
	case "pm_expired_key":
		return 401, Failed("invalid_request_error", "api_key_expired", "")
	case "pm_misconfigured":
		return 400, Failed("invalid_request_error", "parameter_unknown", "")
	case "pm_500_nothing":
		return 500, Failed("api_error", "", "")
	case "pm_no_intent":
		return 402, Failed("card_error", "card_declined", "")
	case "pm_unknown":
		return 400, Failed("invalid_request_error", "resource_missing", "payment_method")
	}
	intent := Object{"id": fmt.Sprintf("pi_%d", len(s.intents)+1), "object": "payment_intent", "amount": amount, "amount_received": 0,
		"currency": r.PostForm.Get("currency"), "created": time.Now().Unix(), "metadata": meta, "status": processing, "livemode": false}
	s.intents = append(s.intents, intent)
	s.publish("payment_intent.created", intent)
	switch {
	case r.PostForm.Get("confirm") != "true":
		intent["status"] = "requires_confirmation"
		return 200, maps.Clone(intent)
	case method == "pm_authentication" && r.PostForm.Get("error_on_requires_action") != "true":
		intent["status"] = "requires_action"
		return 200, maps.Clone(intent)
	}
	switch method {
	case "pm_authentication":
		reason := Object{"type": "card_error", "code": "authentication_required"}
		intent["status"], intent["last_payment_error"] = "requires_payment_method", reason
		s.publish("payment_intent.payment_failed", intent)
		return 402, Object{"error": Object{"type": "card_error", "code": "authentication_required", "payment_intent": maps.Clone(intent)}}
	case "pm_declined":
		reason := Object{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}
		intent["status"], intent["last_payment_error"] = "requires_payment_method", reason
		s.publish("payment_intent.payment_failed", intent)
		return 402, Object{"error": Object{"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds", "payment_intent": maps.Clone(intent)}}
	case "pm_processing":
		s.publish("payment_intent.processing", intent)
		return 200, maps.Clone(intent)
	}
	intent["status"], intent["amount_received"] = Succeeded, amount
	s.publish("payment_intent.succeeded", intent)
	if method == "pm_500" {
		return 500, Failed("api_error", "", "")
	}
	return 200, maps.Clone(intent)
}

// amountProblem is why Stripe refuses an amount in its units (docs.stripe.com/currencies).
func amountProblem(currency string, amount int64) Object {
	switch {
	case slices.Contains([]string{"isk", "ugx"}, currency) && amount%100 != 0:
		return Failed("invalid_request_error", "invalid_charge_amount_no_decimal_compatible", "")
	case slices.Contains([]string{"bhd", "jod", "kwd", "omr", "tnd"}, currency) && amount%10 != 0:
		return Failed("invalid_request_error", "parameter_invalid_integer", "amount")
	}
	return nil
}

func (s *Server) actRefund(intentID string, amount int64, meta Object) (int, Object) {
	intent := find(s.intents, intentID)
	if intent == nil {
		return 404, Failed("invalid_request_error", "resource_missing", "payment_intent")
	}
	left := intent["amount_received"].(int64)
	for _, f := range s.refunds {
		if f["payment_intent"] == intentID {
			left -= f["amount"].(int64)
		}
	}
	if left == 0 {
		return 400, Failed("invalid_request_error", "charge_already_refunded", "")
	}
	if amount > left {
		return 400, Failed("invalid_request_error", "", "amount")
	}
	refund := Object{"id": fmt.Sprintf("re_%d", len(s.refunds)+1), "object": "refund", "amount": amount, "currency": intent["currency"],
		"payment_intent": intentID, "status": s.refund, "metadata": meta, "created": time.Now().Unix()}
	s.refunds = append(s.refunds, refund)
	s.publish("refund.created", refund)
	return 200, maps.Clone(refund)
}

func (s *Server) read(r *http.Request) (int, Object) {
	all, of := s.intents, func(o Object) bool {
		created := o["created"].(int64)
		return created >= s.number(r, "created[gte]") && created <= s.number(r, "created[lte]")
	}
	path, id, one := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if path == "refunds" {
		all, of = s.refunds, func(o Object) bool { return o["payment_intent"] == r.Form.Get("payment_intent") }
	}
	if one {
		if object := find(all, id); object != nil {
			return 200, object
		}
		return 404, Failed("invalid_request_error", "resource_missing", "id")
	}
	page, skip, more := []Object{}, r.Form.Get("starting_after"), false
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
	return 200, Object{"object": "list", "url": r.URL.Path, "has_more": more, "data": page}
}

func (s *Server) number(r *http.Request, name string) int64 {
	n, err := strconv.ParseInt(r.Form.Get(name), 10, 64)
	if err != nil {
		s.t.Errorf("%s %s: %v", r.URL, name, err)
	}
	return n
}

func find(objects []Object, id string) Object {
	for _, o := range objects {
		if o["id"] == id {
			return o
		}
	}
	return nil
}

func (s *Server) publish(kind string, about Object) {
	body, err := json.Marshal(Object{"id": fmt.Sprintf("evt_%d", len(s.events)+1), "object": "event", "type": kind, "livemode": false,
		"data": Object{"object": about}})
	if err != nil {
		s.t.Errorf("event: %v", err)
	}
	s.events = append(s.events, Event{kind, body})
}

// Change changes members of the PaymentIntent or refund, as Stripe does when a bank answers or a
// person works in its dashboard, and publishes an event of it. Kept answers stay as they are.
func (s *Server) Change(id string, members Object, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object := find(slices.Concat(s.intents, s.refunds), id)
	maps.Copy(object, members)
	s.publish(kind, object)
}

// Amount is that of a PaymentIntent or refund.
func (s *Server) Amount(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return find(slices.Concat(s.intents, s.refunds), id)["amount"].(int64)
}

// Refund sets the status of the refunds that come.
func (s *Server) Refund(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refund = status
}

// Event is the newest event of the kind.
func (s *Server) Event(kind string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.events) - 1; i >= 0; i-- {
		if s.events[i].Kind == kind {
			return s.events[i].Body
		}
	}
	s.t.Fatalf("no event %s", kind)
	return nil
}

// Asked returns the requests since the last call, each as its method and path.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// Moved counts the charges and the refunds that moved money.
func (s *Server) Moved() (charges, refunds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return count(s.intents), count(s.refunds)
}

func count(objects []Object) (moved int) {
	for _, o := range objects {
		if o["status"] == Succeeded {
			moved++
		}
	}
	return moved
}

// Sign returns the headers of an event that is sent at that time.
func Sign(body []byte, secret string, at time.Time) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	header.Set("Stripe-Signature", webhook.GenerateTestSignedPayload(
		&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at}).Header)
	return header
}
