package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// shoppers shop side by side: enough for both replicas to have something to do.
	shoppers = 4
	// thinking is a shopper's pause before each order.
	thinking = 200 * time.Millisecond
	// headerEvery so many lines the columns are named again.
	headerEvery = 20
)

// watch shops through nginx until ctx ends, and writes each second what the shoppers have seen.
func watch(ctx context.Context, it *stack.Stack, out io.Writer) error {
	if !it.Claimed() {
		return fmt.Errorf("%w in %s", stack.ErrNoStack, it.Dir)
	}
	w := newWatcher()
	defer w.http.CloseIdleConnections()
	shop, err := w.open(ctx, it.URL())
	if err != nil {
		return fmt.Errorf("open the shop: %w", err)
	}
	fmt.Fprintf(out, "%d shoppers order and pay through %s, and click twice. Break something in another terminal. Ctrl-C ends this.\n", shoppers, it.URL())
	var shopping sync.WaitGroup
	for range shoppers {
		shopping.Go(func() {
			for wait.Pause(ctx, thinking) == nil {
				w.buy(ctx, shop)
			}
		})
	}
	for lines := 0; wait.Pause(ctx, time.Second) == nil; lines++ {
		if lines%headerEvery == 0 {
			fmt.Fprintf(out, "\n%-8s %6s %6s %6s %6s %8s %8s %8s %7s %9s\n", "", "req/s", "api-1", "api-2", "paid", "replays", "retries", "waiting", "errors", "slowest")
		}
		fmt.Fprintf(out, "%s %s\n", time.Now().Format(time.TimeOnly), w.next())
	}
	shopping.Wait()
	return nil
}

// watcher is what the shoppers share. Safe for concurrent use.
type watcher struct {
	sku      string
	customer uuid.UUID
	http     *http.Client // repeats a request until it is answered

	mu      sync.Mutex
	now     second
	waiting int // requests without an answer
}

// second is what the shoppers have seen since the last line.
type second struct {
	answers, paid, replays, retries, errors int

	by      map[string]int // answers by replica
	slowest time.Duration  // with all its retries
	trouble string         // the last error
}

func newWatcher() *watcher {
	w := &watcher{sku: "watch-" + strings.ToLower(rand.Text()[:8])}
	w.http = &http.Client{Transport: &transport.Transport{Base: &http.Transport{MaxIdleConnsPerHost: shoppers}, OnRetry: func(int, string, time.Duration) {
		w.note(func(s *second) { s.retries++ })
	}}}
	return w
}

func (w *watcher) note(what func(*second)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.now)
}

// open puts something on the shelf, and makes a customer.
func (w *watcher) open(ctx context.Context, url string) (*client.ClientWithResponses, error) {
	authenticate := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer sk_test_demo")
		return nil
	}
	shop, err := client.NewClientWithResponses(url+"/v1", client.WithHTTPClient(w), client.WithRequestEditorFn(authenticate))
	if err != nil {
		return nil, err
	}
	mug := client.ProductWrite{Name: "Watched mug", Price: client.Money{Amount: 2500, Currency: "USD"}, Stock: 1_000_000}
	if _, err := shop.PutProductWithResponse(ctx, w.sku, nil, mug); err != nil {
		return nil, err
	}
	ada := client.CustomerCreate{Name: "Ada", Email: w.sku + "@example.com"}
	made, err := shop.CreateCustomerWithResponse(ctx, &client.CreateCustomerParams{IdempotencyKey: w.sku}, ada)
	if err != nil {
		return nil, err
	}
	if made.JSON201 == nil {
		return nil, fmt.Errorf("the answer is no customer: %s", made.Body)
	}
	w.customer = made.JSON201.ID
	return shop, nil
}

// buy orders and pays, and sends the payment once more. Errors are counted where they occur.
func (w *watcher) buy(ctx context.Context, shop *client.ClientWithResponses) {
	key := rand.Text()
	cart := client.OrderCreate{CustomerID: w.customer}
	cart.Items = append(cart.Items, struct {
		Quantity int32      `json:"quantity"`
		Sku      client.SKU `json:"sku"`
	}{1, w.sku})
	order, err := shop.CreateOrderWithResponse(ctx, &client.CreateOrderParams{IdempotencyKey: "order-" + key}, cart)
	if err != nil || order.JSON201 == nil {
		return
	}
	token := "tok_visa"
	card := client.PaymentCreate{Method: client.PaymentMethod{Type: "card", Token: &token}}
	for range 2 {
		if _, err := shop.CreatePaymentWithResponse(ctx, order.JSON201.ID, &client.CreatePaymentParams{IdempotencyKey: "pay-" + key}, card); err != nil {
			return
		}
	}
}

// Do sends a request for the API's client until it is answered, and counts the answer. A refusal is
// an error, too.
func (w *watcher) Do(r *http.Request) (*http.Response, error) {
	began := time.Now()
	w.note(func(*second) { w.waiting++ })
	defer w.note(func(*second) { w.waiting-- })
	answer, err := w.http.Do(r)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		var problem client.Problem
		_ = json.NewDecoder(answer.Body).Decode(&problem)
		_ = answer.Body.Close()
		err = fmt.Errorf("%s %s: %d %s", r.Method, r.URL.Path, answer.StatusCode, problem.Code)
	}
	w.note(func(s *second) {
		switch {
		case r.Context().Err() != nil: // hung up
		case err != nil:
			s.errors++
			s.trouble = err.Error()
		default:
			s.take(answer, strings.HasSuffix(r.URL.Path, "/payments"), time.Since(began))
		}
	})
	return answer, err
}

func (s *second) take(answer *http.Response, payment bool, took time.Duration) {
	s.answers++
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.by[answer.Header.Get("X-Served-By")]++
	s.slowest = max(s.slowest, took)
	if answer.Header.Get("X-Idempotent-Replay") == "true" {
		s.replays++
	} else if payment {
		s.paid++
	}
}

// next returns the second's line, and begins another second.
func (w *watcher) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.now
	w.now = second{}
	return strings.TrimRight(fmt.Sprintf("%6d %6d %6d %6d %8d %8d %8d %7d %6d ms  %s", s.answers, s.by[stack.API1], s.by[stack.API2],
		s.paid, s.replays, s.retries, w.waiting, s.errors, s.slowest.Milliseconds(), s.trouble), " ")
}
