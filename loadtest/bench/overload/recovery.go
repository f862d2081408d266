package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/bench/curve"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// stormy is for how long four times the limit is offered, and calm for how long half of it is.
	stormy, calm = 30 * time.Second, 15 * time.Second
	// wellWithin is when all must be well after the load has fallen.
	wellWithin = 5 * time.Second
	// wellAnswered is how long a new order may take when all is well.
	wellAnswered = time.Second
	// settled bounds the wait for retries and events.
	settled = 90 * time.Second
)

var errUnsettled = errors.New("not every event has had its effect")

// purchase is a new order of a client that retries.
type purchase struct {
	key         string
	began, took time.Duration // since the beginning of the run
	attempts    int
	code        int  // of the last answer; 0: none
	executed    bool // some attempt may have been let in
}

// crowd is the transport of clients that retry, each to place one order. Safe for concurrent use.
type crowd struct {
	base  http.RoundTripper
	began time.Time
	ctx   context.Context // at whose end they leave

	mu  sync.Mutex
	all []purchase
}

// recovery offers four times the limit for a while, by clients that retry and then leave, and then
// half of it, by others. It fails unless all is well soon after, and the books agree with what the
// clients saw.
func recovery(ctx context.Context, cfg config, s *shop.Shop, out io.Writer) error {
	c := &crowd{base: shop.Connections(), began: time.Now()}
	rush, leave := context.WithTimeout(ctx, stormy) // who came for the rush stops retrying
	defer leave()
	c.offer(rush, s, 4*cfg.retries, stormy)
	fell := time.Since(c.began)
	c.offer(ctx, s, max(1, cfg.retries/2), calm)
	late := lateOnes(c.all, fell+wellWithin)
	count(c.all, fell, out)
	fmt.Fprintf(out, "%d of the orders that began %s after the fall or later took more than %s or failed\n", late, wellWithin, wellAnswered)
	err := audit(ctx, cfg, s, c.all)
	if late > 0 {
		err = errors.Join(err, errors.New("not all was well again in time"))
	}
	if err == nil {
		fmt.Fprintln(out, "no key in progress, audit exact")
	}
	return err
}

// offer has orders placed at a rate, and returns when the last client has its answer or has left,
// because ctx has ended.
func (c *crowd) offer(ctx context.Context, s *shop.Shop, rate int, period time.Duration) {
	c.ctx = ctx
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: c}))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	for range attacker.Attack(s.NewOrders, vegeta.Rate{Freq: rate, Per: time.Second}, period, "") {
		continue // the crowd has noted it
	}
}

// RoundTrip implements [http.RoundTripper].
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	p := purchase{key: r.Header.Get(idempotency.HeaderKey), began: time.Since(c.began)}
	retrying := &transport.Transport{Base: observed{c.base, &p}}
	answer, err := retrying.RoundTrip(r.WithContext(c.ctx))
	if err == nil {
		p.code = answer.StatusCode
	}
	p.took = time.Since(c.began) - p.began
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, p)
	return answer, err
}

// observed notes what the attempts of a purchase met.
type observed struct {
	http.RoundTripper
	p *purchase
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	o.p.attempts++
	answer, err := o.RoundTripper.RoundTrip(r)
	if err != nil {
		o.p.executed = true
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if answer.StatusCode != http.StatusTooManyRequests && shop.ProblemCode(body) != "overloaded" {
		o.p.executed = true
	}
	return answer, err
}

func lateOnes(all []purchase, since time.Duration) (late int) {
	for _, p := range all {
		if p.began >= since && (p.code != http.StatusCreated || p.took > wellAnswered) {
			late++
		}
	}
	return late
}

// count prints what became of the orders before and after the load fell.
func count(all []purchase, fell time.Duration, out io.Writer) {
	for _, part := range []struct {
		name     string
		from, to time.Duration
	}{{"4 ×", 0, fell}, {"half", fell, 1 << 62}} {
		codes, attempts := map[int]int{}, 0
		for _, p := range all {
			if p.began >= part.from && p.began < part.to {
				codes[p.code]++
				attempts += p.attempts
			}
		}
		fmt.Fprintf(out, "%-5s last answers by status %v, %d attempts\n", part.name, codes, attempts)
	}
}

// audit compares the books with what the clients saw, key by key, when every event has had its
// effect.
func audit(ctx context.Context, cfg config, s *shop.Shop, all []purchase) error {
	opening := map[string]int64{}
	for i := range curve.SKUs {
		opening[s.SKU(i)] = shop.OpeningStock
	}
	reader := books.Reader{DatabaseURL: cfg.Database, RedisAddr: cfg.Redis, ProviderURL: cfg.PSPURL,
		APIKeys: []string{cfg.APIKey}, Opening: map[string]map[string]int64{cfg.APIKey: opening}, Since: s.Opened}
	var held books.Books
	err := wait.For(ctx, settled, time.Second, func(ctx context.Context) (err error) {
		if held, err = reader.Read(ctx); err == nil && !held.Consumed() {
			return errUnsettled
		}
		return err
	})
	if err != nil && !errors.Is(err, errUnsettled) { // what is missing is found by the check
		return err
	}
	rows := map[string]books.KeyRow{}
	for _, row := range held.Keys {
		rows[row.Key] = row
	}
	var errs []error
	for _, p := range all {
		row, ok := rows[p.key]
		switch {
		case p.code == http.StatusCreated && !row.Succeeded():
			errs = append(errs, fmt.Errorf("%s was answered 201, and is not kept", p.key))
		case ok && !p.executed:
			errs = append(errs, fmt.Errorf("%s was turned away, and there is a row: %s", p.key, row.Status))
		}
	}
	for _, v := range books.Check(held) {
		errs = append(errs, errors.New(v.String()))
	}
	return errors.Join(errs[:min(len(errs), 20)]...)
}
