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

	"github.com/oncepay/oncepay/idempotency/transport"
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

// purchase is a new order of a client that retries.
type purchase struct {
	shop.Order
	began, took time.Duration // since the beginning of the run
	attempts    int
	code        int  // of the last answer; 0: none
	executed    bool // some attempt may have been let in
}

// recovery offers four times the limit for a while, by clients that retry and then leave, and then
// half of it, by others. It fails unless all is well soon after, and the books agree with what the
// clients saw.
func recovery(ctx context.Context, cfg config, s *shop.Shop, out io.Writer) error {
	began := time.Now()
	base := shop.Connections()
	var mu sync.Mutex
	var all []purchase
	var group sync.WaitGroup
	offer := func(ctx context.Context, rate int, period time.Duration) {
		ticker := time.NewTicker(time.Second / time.Duration(rate))
		defer ticker.Stop()
		for end := time.Now().Add(period); time.Now().Before(end) && ctx.Err() == nil; <-ticker.C {
			group.Go(func() {
				p := buy(ctx, cfg, s, base, began)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, p)
			})
		}
	}
	crowd, leave := context.WithCancel(ctx)
	defer leave()
	offer(crowd, 4*cfg.retries, stormy)
	leave() // who came for the rush stops retrying
	fell := time.Since(began)
	offer(ctx, max(1, cfg.retries/2), calm)
	group.Wait()
	late := lateOnes(all, fell+wellWithin)
	count(all, fell, out)
	fmt.Fprintf(out, "%d of the orders that began %s after the fall or later took more than %s or failed\n", late, wellWithin, wellAnswered)
	err := audit(ctx, cfg, s, all)
	if late > 0 {
		err = errors.Join(err, errors.New("not all was well again in time"))
	}
	if err == nil {
		fmt.Fprintln(out, "no key in progress, audit exact")
	}
	return err
}

// buy places one order by a client that retries.
func buy(ctx context.Context, cfg config, s *shop.Shop, base http.RoundTripper, began time.Time) purchase {
	p := purchase{Order: s.NewOrder(), began: time.Since(began)}
	defer func() { p.took = time.Since(began) - p.began }()
	client := &http.Client{Transport: &transport.Transport{Base: observed{base, &p}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.BaseURL+"/v1/orders", bytes.NewReader(p.Body))
	if err != nil {
		panic(err) // our own URL
	}
	r.Header = s.Header(p.Key)
	answer, err := client.Do(r)
	if err != nil {
		return p
	}
	p.code = answer.StatusCode
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	p.took = time.Since(began) - p.began
	return p
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
	if answer.StatusCode != http.StatusTooManyRequests && codeOf(body) != "overloaded" {
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

// audit compares the books with what the clients saw, key by key.
func audit(ctx context.Context, cfg config, s *shop.Shop, all []purchase) error {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	held, err := readBooks(ctx, cfg, s)
	if err != nil {
		return err
	}
	rows := map[string]books.KeyRow{}
	for _, row := range held.Keys {
		rows[row.Key] = row
	}
	var errs []error
	for _, p := range all {
		row, ok := rows[p.Key]
		switch {
		case p.code == http.StatusCreated && !row.Succeeded():
			errs = append(errs, fmt.Errorf("%s was answered 201, and is not kept", p.Key))
		case ok && !p.executed:
			errs = append(errs, fmt.Errorf("%s was turned away, and there is a row: %s", p.Key, row.Status))
		}
	}
	for _, v := range append(books.Unfinished(held), books.Check(held)...) {
		errs = append(errs, errors.New(v.String()))
	}
	return errors.Join(errs[:min(len(errs), 20)]...)
}

// readBooks reads them when every event has had its effect.
func readBooks(ctx context.Context, cfg config, s *shop.Shop) (books.Books, error) {
	opening := map[string]int64{}
	for i := range skus {
		opening[s.SKU(i)] = shop.OpeningStock
	}
	reader := books.Reader{DatabaseURL: cfg.Database, RedisAddr: cfg.Redis, ProviderURL: cfg.PSPURL,
		APIKeys: []string{cfg.APIKey}, Opening: map[string]map[string]int64{cfg.APIKey: opening}, Since: s.Opened}
	for {
		held, err := reader.Read(ctx)
		if err != nil || held.Consumed() {
			return held, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return held, nil // what is missing is found by the check
		}
	}
}
