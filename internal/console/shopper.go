package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
)

// apiKey is the demo account's, which everybody knows.
const apiKey = "sk_test_demo"

// shop is the public API as a shopper uses it. It retries nothing by itself, unless its HTTP client
// does. Safe for concurrent use.
type shop struct {
	client *http.Client
	at     *stack.Topology
}

// purchase is a payment that can be sent again.
type purchase struct{ Order, Key, Token string }

func (p purchase) path() string { return "/v1/orders/" + p.Order + "/payments" }

func (p purchase) body() string { return fmt.Sprintf(`{"method":{"type":"card","token":%q}}`, p.Token) }

// answer is what a request came to. The body is kept whole: a replay has to be the same bytes.
type answer struct {
	Status     int    // 0: there was none
	ID         string // of a resource
	Code       string // of a problem
	Body       []byte
	ServedBy   string
	Replay     bool
	RetryAfter string
}

// String is such as "409 out_of_stock".
func (a answer) String() string {
	if a.Status == 0 {
		return "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Code))
}

// isFinal reports whether a client stops asking.
func (a answer) isFinal() bool {
	return a.Status > 0 && a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests &&
		(a.Status != http.StatusConflict || a.RetryAfter == "")
}

// send sends a request through a door, with what is not empty of a key and a trace.
func (s shop) send(ctx context.Context, door, method, path, key, trace, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.at.Addr(door)+path, strings.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("make the request: %w", err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if trace != "" {
		req.Header.Set("Traceparent", "00-"+trace+"-"+trace[:16]+"-01")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	var has struct{ ID, Code string }
	_ = json.Unmarshal(raw, &has) // what is neither a resource nor a problem has none
	return answer{resp.StatusCode, has.ID, has.Code, raw, resp.Header.Get("X-Served-By"),
		resp.Header.Get("X-Idempotent-Replay") == "true", resp.Header.Get("Retry-After")}, nil
}

// call is send through nginx for an answer that has to be a success.
func (s shop) call(ctx context.Context, method, path, key, body string) (answer, error) {
	a, err := s.send(ctx, stack.Nginx, method, path, key, "", body)
	if err == nil && a.Status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s", method, path, a)
	}
	return a, err
}

// open puts a product on the shelf, whose price is in cents, and returns a cart with one.
func (s shop) open(ctx context.Context, sku, name string, price, stock int) (one string, err error) {
	_, err = s.call(ctx, http.MethodPut, "/v1/products/"+sku, "",
		fmt.Sprintf(`{"name":%q,"price":{"amount":%d,"currency":"USD"},"stock":%d}`, name, price, stock))
	if err != nil {
		return "", err
	}
	customer, err := s.customer(ctx)
	return cart(customer, sku, 1), err
}

// customer makes one whose mails nobody else gets.
func (s shop) customer(ctx context.Context) (id string, err error) {
	key := newKey("customer")
	made, err := s.call(ctx, http.MethodPost, "/v1/customers", key, fmt.Sprintf(`{"name":"Ada","email":"%s@example.com"}`, key))
	return made.ID, err
}

// order makes a customer and an order of two shirts, and returns how it will be paid.
func (s shop) order(ctx context.Context, key, token string) (purchase, error) {
	customer, err := s.customer(ctx)
	if err != nil {
		return purchase{}, err
	}
	made, err := s.call(ctx, http.MethodPost, "/v1/orders", newKey("order"), cart(customer, "tee-black", 2))
	return purchase{made.ID, key, token}, err
}

func cart(customer, sku string, quantity int) string {
	return fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":%q,"quantity":%d}]}`, customer, sku, quantity)
}

// newKey makes a key that a person can tell from others.
func newKey(what string) string { return what + "-" + strings.ToLower(rand.Text()[:8]) }

// Who sends requests.
const (
	you           = "you"
	demonstration = "demonstration"
)

// shopIt presses a button of the shopper. It does not wait for the answers to the payments: the
// attempts get them.
func (s *Server) shopIt(ctx context.Context, form url.Values) (said string, err error) {
	button, token := form.Get("button"), form.Get("token")
	var p purchase
	var first string // replica
	s.change(func(now *state) { p, first = now.bought, now.firstWorker(now.bought.Key) })
	door, what, times := stack.Nginx, "retry", 1
	switch button {
	case "pay":
		what = "pay with " + token
		p, err = s.buy(ctx, token)
	case "double":
		what, times = "double click", 2
		p, err = s.buy(ctx, token)
	case "other-card":
		what = "same key, other card"
		if p.Token == "tok_mastercard" {
			p.Token = "tok_visa"
		} else {
			p.Token = "tok_mastercard"
		}
	case "other-replica": // the one that did not get it first
		door = stack.API2
		if first == door {
			door = stack.API1
		}
	case "retry":
	default:
		err = errors.New("there is no such button")
	}
	switch {
	case err != nil:
		return "", err
	case p.Key == "":
		return "", errors.New("there is no payment yet: order and pay first")
	}
	for range times {
		s.background.Go(func() { _, _ = s.pay(s.stopping, you, what, door, p) })
	}
	return fmt.Sprintf("Sent to %s: %s, %s, key %s", door, what, p.Token, p.Key), nil
}

// buy places an order, and remembers how it will be paid: it can be sent again.
func (s *Server) buy(ctx context.Context, token string) (p purchase, err error) {
	if remedy := s.look(ctx).Services[stack.Nginx].Remedy; remedy != "" {
		return p, fmt.Errorf("nobody can order while nginx does not run: stack %s", remedy)
	}
	p, err = s.patient.order(ctx, newKey("pay"), token)
	if err == nil {
		s.change(func(now *state) { now.bought = p })
		s.showKey(ctx, p.Key)
	}
	return p, err
}
