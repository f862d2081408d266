package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

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
	sent     []request // by number
	second   request   // the duplicate of the last raced one
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

// drive sends every planned request exactly once, at its time: repeating them is the plan's
// business. What was sent before ctx ends is answered.
func (l *load) drive(ctx context.Context, out io.Writer) error {
	attacker := vegeta.NewAttacker(vegeta.Client(l.client))
	defer l.client.CloseIdleConnections()
	l.began = time.Now()
	defer report.Progress(out, l.line)()
	defer l.watchMemory(ctx)()
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	for result := range attacker.Attack(l.next, pacer{l.cfg}, 0, "") {
		l.enter(l.received(result))
	}
	return ctx.Err()
}

// next is a [vegeta.Targeter]. The fragment of a URL, which is not sent, tells which request it is.
func (l *load) next(t *vegeta.Target) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sent)
	q := l.second
	if slot(n) != duplicate {
		q, l.second = l.plan(n)
	}
	l.sent = append(l.sent, q)
	path, content := q.encode(strconv.Itoa(n))
	body, err := json.Marshal(content)
	*t = vegeta.Target{Method: http.MethodPost, URL: fmt.Sprintf("%s/v1%s#%d", q.base, path, n), Header: l.shop.Header(q.key), Body: body}
	return err
}

// received is the answer that a result holds.
func (l *load) received(r *vegeta.Result) answer {
	_, fragment, _ := strings.Cut(r.URL, "#")
	n, _ := strconv.Atoi(fragment)
	l.mu.Lock()
	a := answer{request: l.sent[n], body: r.Body}
	l.mu.Unlock()
	sent := r.Timestamp.Sub(l.began)
	a.Attempt = journal.Attempt{Number: n, Invoke: sent, Return: sent + r.Latency, Status: int(r.Code),
		Replayed: r.Headers.Get(idempotency.HeaderReplay) == "true"}
	if r.Code == 0 { // vegeta calls a refusal an error, too
		a.Error = r.Error
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
