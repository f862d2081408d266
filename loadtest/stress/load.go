package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// answerTimeout is above nginx's 95 s, so that the system gives up first and says why.
	answerTimeout = 100 * time.Second
	// memoryInterval is fine enough for a peak that matters.
	memoryInterval = time.Second
	residentMetric = "process_resident_memory_bytes"
	// maxFinished bounds what is remembered for replays and mismatches.
	maxFinished = 2000
	maxQuantity = 3
)

// load is the requests of a run and their answers. Safe for concurrent use while it is driven.
type load struct {
	cfg    config
	shop   *shop.Shop
	client *http.Client
	began  time.Time
	memory map[string]uint64 // peak, by replica
	pairs  int

	mu       sync.Mutex
	unpaid   []request // acknowledged orders; order holds their ID
	finished []request // acknowledged
	answers  []answer
}

// answer is a request and what came back. The number of an attempt is that of the request.
type answer struct {
	request
	journal.Attempt

	body  []byte
	wrong books.Rule // that the answer breaks by itself; empty: none
}

func newLoad(cfg config, s *shop.Shop) *load {
	return &load{cfg: cfg, shop: s, client: shop.Client(answerTimeout), memory: map[string]uint64{}}
}

// drive sends every planned request exactly once, at its time, also while others wait for an
// answer: repeating them is the plan's business. What was sent before ctx ends is answered.
func (l *load) drive(ctx context.Context, out io.Writer) error {
	defer l.client.CloseIdleConnections()
	l.began = time.Now()
	defer report.Progress(out, l.line)()
	defer l.watchMemory(ctx)()
	var sending sync.WaitGroup
	defer sending.Wait()
	var next, second request
	for n := range l.cfg.requests() {
		if err := wait.Pause(ctx, time.Until(l.began.Add(l.cfg.due(n)))); err != nil {
			return err
		}
		if next = second; slot(n) != duplicate {
			next, second = l.plan(n)
		}
		q := next
		sending.Go(func() { l.enter(l.send(context.WithoutCancel(ctx), n, q)) })
	}
	return nil
}

// send sends one request.
func (l *load) send(ctx context.Context, n int, q request) answer {
	a := answer{request: q, Attempt: journal.Attempt{Number: n, Invoke: time.Since(l.began)}}
	err := func() error {
		path, content := q.encode(strconv.Itoa(n))
		raw, err := json.Marshal(content)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, q.base+"/v1"+path, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		r.Header = l.shop.Header(q.key)
		response, err := l.client.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		a.Status, a.Replayed = response.StatusCode, response.Header.Get(idempotency.HeaderReplay) == "true"
		a.body, err = io.ReadAll(response.Body)
		return err
	}()
	if a.Return = time.Since(l.began); err != nil {
		a.Error = err.Error()
	}
	a.judge()
	return a
}

// enter keeps an answer, and makes an acknowledged request available to later ones.
func (l *load) enter(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
	if a.wrong != "" || a.Status != http.StatusCreated || a.kind == replay || a.kind == duplicate {
		return
	}
	if a.method == "" {
		order := a.request
		order.order = a.Resource
		l.unpaid = append(l.unpaid, order)
	}
	if len(l.finished) < maxFinished {
		l.finished = append(l.finished, a.request)
	} else {
		l.finished[rand.IntN(maxFinished)] = a.request
	}
}

// line is how far the load is.
func (l *load) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := tally("all", l.answers)
	return fmt.Sprintf("%4.0fs of %s  answered %d of %d  ok %d  unexpected %d  p99 %.1f ms", time.Since(l.began).Seconds(), l.cfg.Duration,
		all.Requests, l.cfg.requests(), all.OK, all.Unexpected, all.P99)
}

// watchMemory follows the replicas' resident memory until it is stopped. A replica without this
// metric is left out: not every system has it.
func (l *load) watchMemory(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ok := true; ok; ok = wait.Pause(ctx, memoryInterval) == nil {
			for name, url := range map[string]string{"api-1": l.cfg.Ops1URL, "api-2": l.cfg.Ops2URL} {
				if metrics, err := shop.Metrics(ctx, url); err == nil && metrics[residentMetric] > 0 {
					l.memory[name] = max(l.memory[name], uint64(metrics[residentMetric]))
				}
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}
