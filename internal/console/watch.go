package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
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
)

// watcher is what the shoppers share. Safe for concurrent use.
type watcher struct {
	shop shop // repeats a request until it is answered
	cart string

	mu   sync.Mutex
	out  io.Writer
	seen map[string]int // since the last line
}

// columns of a line. Those that wait are requests without an answer.
var columns = []string{"req/s", stack.API1, stack.API2, "paid", "replays", "retries", "errors", "waiting"}

// Watch shops through the nginx of a deployment until ctx ends, and writes each second what the
// shoppers have seen.
func Watch(ctx context.Context, at *stack.Topology, out io.Writer) error {
	w, err := openShop(ctx, at, out)
	if err != nil {
		return fmt.Errorf("open the shop: %w", err)
	}
	defer w.shop.client.CloseIdleConnections()
	fmt.Fprintf(out, "%d shoppers order and pay through %s, and click twice. "+
		"Break something in another terminal. Ctrl-C ends this.\n", shoppers, at.URL())
	var shopping sync.WaitGroup
	for range shoppers {
		shopping.Go(func() {
			for wait.Pause(ctx, thinking) == nil {
				w.buy(ctx)
			}
		})
	}
	for wait.Pause(ctx, time.Second) == nil {
		w.tell()
	}
	shopping.Wait()
	return nil
}

// openShop puts something on the shelf, and makes a customer.
func openShop(ctx context.Context, at *stack.Topology, out io.Writer) (w *watcher, err error) {
	w = &watcher{out: out, seen: map[string]int{}}
	w.shop = shop{&http.Client{Transport: &transport.Transport{
		Base:    &http.Transport{MaxIdleConnsPerHost: shoppers},
		OnRetry: func(transport.Retry) { w.count(1, "retries") },
	}}, at}
	w.cart, err = w.shop.open(ctx, newKey("watch"), "Watched mug", 2500, 1_000_000)
	return w, err
}

// buy orders and pays, and sends the payment once more.
func (w *watcher) buy(ctx context.Context) {
	key := rand.Text()
	order, err := w.post(ctx, "/v1/orders", "order-"+key, w.cart, "")
	p := purchase{order.ID, "pay-" + key, "tok_visa"}
	for range 2 {
		if err == nil {
			_, err = w.post(ctx, p.path(), p.Key, p.body(), "paid")
		}
	}
	if err != nil && ctx.Err() == nil {
		w.count(1, "errors")
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprintln(w.out, err)
	}
}

// post sends a request until it is answered, and counts the answer. A refusal is an error, too.
func (w *watcher) post(ctx context.Context, path, key, body, column string) (answer, error) {
	w.count(1, "waiting")
	a, err := w.shop.call(ctx, http.MethodPost, path, key, body)
	w.count(-1, "waiting")
	if err == nil {
		if a.Replay {
			column = "replays"
		}
		w.count(1, "req/s", a.ServedBy, column)
	}
	return a, err
}

func (w *watcher) count(n int, columns ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, column := range columns {
		w.seen[column] += n
	}
}

// tell writes the second's line, and begins another second.
func (w *watcher) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := time.Now().Format(time.TimeOnly)
	for _, column := range columns {
		line += fmt.Sprintf("%5d %s", w.seen[column], column)
	}
	fmt.Fprintln(w.out, line)
	w.seen = map[string]int{"waiting": w.seen["waiting"]}
}
