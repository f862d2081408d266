package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/admission"
)

// keyLookupTimeout bounds the look at a key when no slot is free. It takes as long only if the
// store does not answer, or if more keys are looked at than Config.Lookups allows.
const keyLookupTimeout = 250 * time.Millisecond

// errOverloaded says nothing about older attempts with the same key: the client finds out by the
// same request.
var errOverloaded = problem{status: http.StatusServiceUnavailable, code: "overloaded", retryAfter: time.Second,
	detail: "There are more requests than can be finished now, so this one was not executed. Retry with the same idempotency key."}

// classOf says what each route is for, by method and pattern. A request whose key is known is of
// class Begun whatever its route is.
var classOf = map[string]admission.Class{
	"POST " + webhookRoute:                     admission.Begun,
	"POST " + stripeRoute:                      admission.Begun,
	"GET " + keyRoute:                          admission.Begun,
	"GET /v1/payments/{payment_id}":            admission.Begun,
	"GET /v1/orders/{order_id}":                admission.Begun,
	"GET /v1/orders/{order_id}/payments":       admission.Begun,
	"GET /v1/payments/{payment_id}/refunds":    admission.Begun,
	"POST /v1/orders/{order_id}/payments":      admission.Money,
	"POST /v1/payments/{payment_id}/refunds":   admission.Money,
	"POST /v1/customers/{customer_id}/top-ups": admission.Money,
	"POST /v1/orders":                          admission.Change,
	"PATCH /v1/orders/{order_id}":              admission.Change,
	"POST /v1/customers":                       admission.Change,
	"PATCH /v1/customers/{customer_id}":        admission.Change,
	"PUT /v1/products/{sku}":                   admission.Change,
	"PATCH /v1/products/{sku}":                 admission.Change,
	"GET /v1/products/{sku}":                   admission.Change,
	"GET /v1/customers/{customer_id}":          admission.Change,
	"GET /v1/customers/{customer_id}/wallet":   admission.Change,
	"GET /v1/products":                         admission.List,
	"GET /v1/orders":                           admission.List,
}

// classFor is the class of a request. HEAD is what GET is.
func classFor(r *http.Request) admission.Class {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if class, ok := classOf[method+" "+routeOf(r)]; ok {
		return class
	}
	return admission.List
}

// limitLoad passes on what the replica can finish. It comes before the key is acquired, so a
// request that is turned away leaves nothing behind.
func (s *Server) limitLoad(next http.Handler) http.Handler {
	if s.cfg.Admission == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, x := r.Context(), exchangeOf(r.Context())
		look := func(ctx context.Context) admission.Key { return s.lookAtKey(ctx, r) }
		slot := s.cfg.Admission.Enter(ctx, classFor(r), x.account, asksToWait(r), look)
		if slot == nil {
			s.fail(w, r, errOverloaded)
			return
		}
		defer slot.Leave()
		out := &slotWriter{ResponseWriter: w, slot: slot}
		if r.Method == http.MethodGet {
			out.refuse = func() { s.fail(w, r, errOverloaded) }
		}
		next.ServeHTTP(out, r.WithContext(admission.WithSlot(ctx, slot)))
		out.begin(0) // if it has no body
	})
}

// slotWriter gives the slot of a request back when its answer begins, which is whole by then. A
// read is refused if its client has left too much unread. A change was made, so its answer is sent,
// and the request then keeps its slot until its client has read it.
type slotWriter struct {
	http.ResponseWriter
	slot           *admission.Slot
	refuse         func() // instead of the answer; nil: it is sent in any case
	status         int
	begun, refused bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *slotWriter) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

// Write implements [http.ResponseWriter].
func (w *slotWriter) Write(p []byte) (int, error) {
	if w.begin(len(p)); w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func (w *slotWriter) begin(size int) {
	if w.begun {
		return
	}
	w.begun = true
	if size > 0 && !w.slot.Answer(size) && w.refuse != nil {
		w.refused = true
		w.refuse()
	} else if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// readBody has the whole body in memory before the request takes a slot: a client that sends slowly
// must not hold one. limitBody bounds the size.
func (s *Server) readBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			body, err := s.readInTurn(r)
			if err != nil {
				w.Header().Set("Connection", "close") // to keep it, net/http would read the rest
				s.fail(w, r, err)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) readInTurn(r *http.Request) ([]byte, error) {
	if s.cfg.Admission != nil {
		end := s.cfg.Admission.Read(exchangeOf(r.Context()).account)
		if end == nil {
			return nil, errOverloaded
		}
		defer end()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, readProblem(err)
	}
	return body, nil
}

// lookAtKey says what the records have of the request's key. What only the authority knows is not
// looked up: that costs what it should save.
func (s *Server) lookAtKey(ctx context.Context, r *http.Request) admission.Key {
	key, present, problem := idempotency.ParseKey(r.Header)
	if !present || problem != nil || s.policyOf(r) == nil {
		return admission.Unknown
	}
	ctx, cancel := context.WithTimeout(ctx, keyLookupTimeout)
	defer cancel()
	if s.lookups.Acquire(ctx, 1) != nil {
		return admission.Unknown
	}
	defer s.lookups.Release(1)
	record, err := idempotency.Lookup(ctx, s.cfg.Store, exchangeOf(ctx).account.String(), key)
	switch {
	case err != nil || record == nil:
		return admission.Unknown
	case record.Status == idempotency.StatusInProgress:
		return admission.InProgress
	}
	return admission.Answered
}

// asksToWait reports whether a request may wait for another attempt with its key (RFC 7240). It
// should not hold a slot meanwhile. It may be wrong about other preferences, which costs a look-up.
func asksToWait(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Prefer"), func(preferences string) bool {
		return strings.Contains(strings.ToLower(preferences), "wait")
	})
}
