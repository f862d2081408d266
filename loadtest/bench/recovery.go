package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// wellWithin is when all must be well after the load has fallen.
	wellWithin = 5 * time.Second
	// wellAnswered is how long a new order may take when all is well.
	wellAnswered = time.Second
	// effective bounds the wait for retries and events.
	effective = 90 * time.Second
)

var errUnsettled = errors.New("not every event has had its effect")

// recovery offers four times the limit for a while, by clients that retry and then leave, and then
// half of it, by others. All is to be well soon after, and the books are to agree with what the
// clients saw.
func recovery(ctx context.Context, b *bench) (map[string]any, error) {
	limit, err := b.limit(ctx)
	if err != nil {
		return nil, err
	}
	rush, leave := context.WithTimeout(ctx, b.cfg.rush) // who came for the rush stops retrying
	defer leave()
	stormy := offer(rush, b.shop, int(4*limit), b.cfg.rush)
	fell := time.Now()
	calm := offer(ctx, b.shop, max(1, int(limit/2)), b.cfg.calm)
	late := lateOnes(calm, fell.Add(wellWithin))
	if late > 0 {
		b.unexpected = append(b.unexpected, fmt.Errorf("%d orders were late or failed, long after the load had fallen", late))
	}
	wrong, err := b.audit(ctx, slices.Concat(stormy, calm))
	b.unexpected = append(b.unexpected, wrong[:min(len(wrong), 20)]...)
	return map[string]any{"limit": limit, "rush": b.cfg.rush, "calm": b.cfg.calm, "within": wellWithin, "well": wellAnswered,
		"stormy": tally(stormy), "calmed": tally(calm), "late": late, "wrong": len(wrong)}, err
}

// purchase is a new order of a client that retries, and the transport of its attempts.
type purchase struct {
	wire     http.RoundTripper
	key      string
	began    time.Time
	took     time.Duration
	attempts int
	code     int  // of the last answer; 0: none
	executed bool // some attempt may have been let in
}

// crowd is the transport of clients that retry, each to place one order. Safe for concurrent use.
type crowd struct {
	wire http.RoundTripper
	stay context.Context // at whose end they leave

	mu  sync.Mutex
	all []*purchase
}

// offer has orders placed at a rate, and returns when the last client has its answer or has left,
// because ctx has ended.
func offer(ctx context.Context, s *shop.Shop, rate int, period time.Duration) []*purchase {
	c := &crowd{wire: shop.Connections(), stay: ctx}
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: c}))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	for range attacker.Attack(s.NewOrders, vegeta.Rate{Freq: rate, Per: time.Second}, period, "") {
		continue // the crowd has noted it
	}
	return c.all
}

// RoundTrip implements [http.RoundTripper].
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	p := &purchase{wire: c.wire, key: r.Header.Get(idempotency.HeaderKey), began: time.Now()}
	answer, err := (&transport.Transport{Base: p}).RoundTrip(r.WithContext(c.stay))
	if err == nil {
		p.code = answer.StatusCode
	}
	p.took = time.Since(p.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, p)
	return answer, err
}

// RoundTrip implements [http.RoundTripper]: it notes what one attempt met.
func (p *purchase) RoundTrip(r *http.Request) (*http.Response, error) {
	p.attempts++
	answer, err := p.wire.RoundTrip(r)
	if err != nil {
		p.executed = true
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if answer.StatusCode != http.StatusTooManyRequests && shop.ProblemCode(body) != "overloaded" {
		p.executed = true
	}
	return answer, err
}

func lateOnes(all []*purchase, since time.Time) (late int) {
	for _, p := range all {
		if !p.began.Before(since) && (p.code != http.StatusCreated || p.took > wellAnswered) {
			late++
		}
	}
	return late
}

// tally counts the orders at one rate, their attempts, and the last answers by their status, which
// is 0 where there is none.
func tally(all []*purchase) map[string]int {
	counted := map[string]int{"orders": len(all)}
	for _, p := range all {
		counted["attempts"] += p.attempts
		counted[fmt.Sprint("answered ", p.code)]++
	}
	return counted
}

// audit compares the books with what the clients saw, key by key, when every event has had its
// effect.
func (b *bench) audit(ctx context.Context, all []*purchase) (wrong []error, err error) {
	opening := map[string]int64{}
	for i := range b.cfg.skus {
		opening[b.shop.SKU(i)] = shop.OpeningStock
	}
	reader := books.Reader{DatabaseURL: b.databaseURL(), RedisAddr: b.stack.Addr(stack.Redis), ProviderURL: "http://" + b.stack.Addr(stack.PSP),
		APIKeys: []string{apiKey}, Opening: map[string]map[string]int64{apiKey: opening}, Since: b.shop.Opened}
	var held books.Books
	err = wait.For(ctx, effective, time.Second, func(ctx context.Context) (err error) {
		if held, err = reader.Read(ctx); err == nil && !held.Consumed() {
			return errUnsettled
		}
		return err
	})
	if err != nil && !errors.Is(err, errUnsettled) { // what is missing is found by the check
		return nil, err
	}
	rows := map[string]books.KeyRow{}
	for _, row := range held.Keys {
		rows[row.Key] = row
	}
	for _, p := range all {
		row, ok := rows[p.key]
		switch {
		case p.code == http.StatusCreated && !row.Succeeded():
			wrong = append(wrong, fmt.Errorf("%s was answered 201, and is not kept", p.key))
		case ok && !p.executed:
			wrong = append(wrong, fmt.Errorf("%s was turned away, and there is a row: %s", p.key, row.Status))
		}
	}
	for _, v := range books.Check(held) {
		wrong = append(wrong, errors.New(v.String()))
	}
	return wrong, nil
}
