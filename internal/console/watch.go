package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
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

// Watch shops through the nginx at a URL until ctx ends, and writes each second what the shoppers
// have seen.
func Watch(ctx context.Context, url string, out io.Writer) error {
	w, err := openShop(ctx, url)
	if err != nil {
		return fmt.Errorf("open the shop: %w", err)
	}
	defer w.shop.client.CloseIdleConnections()
	fmt.Fprintf(out, "%d shoppers order and pay through %s, and click twice. "+
		"Break something in another terminal. Ctrl-C ends this.\n", shoppers, url)
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
			fmt.Fprintf(out, "\n%-8s %6s %6s %6s %6s %8s %8s %8s %7s %9s\n",
				"", "req/s", "api-1", "api-2", "paid", "replays", "retries", "waiting", "errors", "slowest")
		}
		fmt.Fprintf(out, "%s %s\n", time.Now().Format(time.TimeOnly), w.next())
	}
	shopping.Wait()
	return nil
}

// watcher is what the shoppers share. Safe for concurrent use.
type watcher struct {
	shop          shop // repeats a request until it is answered
	sku, customer string

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

// openShop puts something on the shelf, and makes a customer.
func openShop(ctx context.Context, url string) (w *watcher, err error) {
	w = &watcher{sku: newKey("watch"), now: second{by: map[string]int{}}}
	w.shop = shop{&http.Client{Transport: &transport.Transport{
		Base:    &http.Transport{MaxIdleConnsPerHost: shoppers},
		OnRetry: func(int, string, time.Duration) { w.note(func(s *second) { s.retries++ }) },
	}}, map[string]string{stack.Nginx: url}}
	if err = w.shop.product(ctx, w.sku, "Watched mug", 2500, 1_000_000); err == nil {
		w.customer, err = w.shop.customer(ctx)
	}
	return w, err
}

func (w *watcher) note(what func(*second)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.now)
}

// buy orders and pays, and sends the payment once more. Errors are counted where they occur.
func (w *watcher) buy(ctx context.Context) {
	key := rand.Text()
	order, ok := w.post(ctx, "/v1/orders", "order-"+key, cart(w.customer, w.sku, 1))
	p := purchase{order.ID, "pay-" + key, "tok_visa"}
	for range 2 {
		if ok {
			_, ok = w.post(ctx, p.path(), p.Key, p.body())
		}
	}
}

// post sends a request until it is answered, and counts the answer. A refusal is an error, too.
func (w *watcher) post(ctx context.Context, path, key string, body any) (a answer, ok bool) {
	began := time.Now()
	w.note(func(*second) { w.waiting++ })
	a, err := w.shop.send(ctx, stack.Nginx, http.MethodPost, path, key, "", body)
	if err == nil && a.Status >= http.StatusBadRequest {
		err = fmt.Errorf("POST %s: %d %s", path, a.Status, a.Code)
	}
	w.note(func(s *second) {
		w.waiting--
		switch {
		case ctx.Err() != nil: // hung up
		case err != nil:
			s.errors++
			s.trouble = err.Error()
		default:
			s.answers++
			s.by[a.ServedBy]++
			s.slowest = max(s.slowest, time.Since(began))
			if a.Replay {
				s.replays++
			} else if strings.HasSuffix(path, "/payments") {
				s.paid++
			}
		}
	})
	return a, err == nil
}

// next returns the second's line, and begins another second.
func (w *watcher) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.now
	w.now = second{by: map[string]int{}}
	return strings.TrimRight(fmt.Sprintf("%6d %6d %6d %6d %8d %8d %8d %7d %6d ms  %s",
		s.answers, s.by[stack.API1], s.by[stack.API2], s.paid, s.replays, s.retries, w.waiting, s.errors,
		s.slowest.Milliseconds(), s.trouble), " ")
}
