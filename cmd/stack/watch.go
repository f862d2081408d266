package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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
	w := newLoop(it.URL())
	defer w.wire.CloseIdleConnections()
	if err := w.open(ctx); err != nil {
		return fmt.Errorf("open the shop: %w", err)
	}
	fmt.Fprintf(out, "%d shoppers order and pay through %s, and click twice. Break something in another terminal. Ctrl-C ends this.\n", shoppers, w.url)
	var shopping sync.WaitGroup
	for range shoppers {
		shopping.Go(func() {
			for wait.Pause(ctx, thinking) == nil {
				w.buy(ctx)
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

// loop is what the shoppers share. Safe for concurrent use.
type loop struct {
	url, customer, sku string
	wire               *http.Transport
	client             *http.Client // repeats a request until it is answered

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

func newLoop(url string) *loop {
	w := &loop{url: url, sku: "watch-" + strings.ToLower(rand.Text()[:8]), wire: &http.Transport{MaxIdleConnsPerHost: shoppers}}
	w.client = &http.Client{Transport: &transport.Transport{Base: w.wire, OnRetry: func(int, string, time.Duration) {
		w.note(func(s *second) { s.retries++ })
	}}}
	return w
}

func (w *loop) note(what func(*second)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.now)
}

// open puts something on the shelf, and makes a customer.
func (w *loop) open(ctx context.Context) error {
	product := map[string]any{"name": "Watched mug", "price": map[string]any{"amount": 2500, "currency": "USD"}, "stock": 1_000_000}
	if _, err := w.send(ctx, http.MethodPut, "/v1/products/"+w.sku, "", product); err != nil {
		return err
	}
	var err error
	w.customer, err = w.send(ctx, http.MethodPost, "/v1/customers", w.sku, map[string]string{"name": "Ada", "email": w.sku + "@example.com"})
	return err
}

// buy orders and pays, and sends the payment once more. Errors are counted where they occur.
func (w *loop) buy(ctx context.Context) {
	key := rand.Text()
	cart := map[string]any{"customer_id": w.customer, "items": []any{map[string]any{"sku": w.sku, "quantity": 1}}}
	order, err := w.send(ctx, http.MethodPost, "/v1/orders", "order-"+key, cart)
	if err != nil {
		return
	}
	card := map[string]any{"method": map[string]string{"type": "card", "token": "tok_visa"}}
	for range 2 {
		if _, err := w.send(ctx, http.MethodPost, "/v1/orders/"+order+"/payments", "pay-"+key, card); err != nil {
			return
		}
	}
}

// send sends a request until it is answered, and returns the ID of what it made.
func (w *loop) send(ctx context.Context, method, path, key string, body any) (id string, err error) {
	began := time.Now()
	w.note(func(*second) { w.waiting++ })
	defer w.note(func(*second) { w.waiting-- })
	answer, id, err := w.ask(ctx, method, path, key, body)
	w.note(func(s *second) {
		switch {
		case ctx.Err() != nil: // hung up
		case err != nil:
			s.errors++
			s.trouble = err.Error()
		default:
			s.take(answer, strings.HasSuffix(path, "/payments"), time.Since(began))
		}
	})
	return id, err
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

func (w *loop) ask(ctx context.Context, method, path, key string, body any) (answer *http.Response, id string, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, "", fmt.Errorf("encode the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, "", fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer sk_test_demo")
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	got, err := w.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = got.Body.Close() }()
	var made struct{ ID, Code string }
	if err := json.NewDecoder(got.Body).Decode(&made); err != nil {
		return nil, "", fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if !slices.Contains([]int{http.StatusOK, http.StatusCreated}, got.StatusCode) {
		return nil, "", fmt.Errorf("%s %s: %d %s", method, path, got.StatusCode, made.Code)
	}
	return got, made.ID, nil
}

// next returns the second's line, and begins another second.
func (w *loop) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.now
	w.now = second{}
	return strings.TrimRight(fmt.Sprintf("%6d %6d %6d %6d %8d %8d %8d %7d %6d ms  %s", s.answers, s.by[stack.API1], s.by[stack.API2],
		s.paid, s.replays, s.retries, w.waiting, s.errors, s.slowest.Milliseconds(), s.trouble), " ")
}
