package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// all is the kind of all requests.
const all journal.Purpose = "all"

// load is the requests of a run, their answers, and what was found out about them.
type load struct {
	config
	shop   *shop.Shop
	began  time.Time
	memory float64 // of a replica in the end, resident, in bytes: under a steady load that is the most

	mu       sync.Mutex
	sent     []request  // by number
	unpaid   []resource // acknowledged orders
	answered []request  // those whose answer was new, with the ID of what was made
	attempts []journal.Attempt
	rows     map[journal.Purpose]*vegeta.Metrics // by kind
	lag      [3]time.Duration                    // of events: the 50th and 99th percentile, and the most
	found    []books.Violation
}

// pacer sends so many requests at a steady rate, except that the second of a race is sent with the
// first. A busy machine sends them later, and not fewer of them.
type pacer struct {
	vegeta.ConstantPacer

	planned uint64
}

// Pace is that of a [vegeta.Pacer].
func (p pacer) Pace(elapsed time.Duration, sent uint64) (pause time.Duration, stop bool) {
	if sent == p.planned || isSecond(int(sent)) {
		return 0, sent == p.planned
	}
	return p.ConstantPacer.Pace(elapsed, sent)
}

// drive sends every planned request exactly once, at its time. What was sent before ctx ends is
// answered.
func (l *load) drive(ctx context.Context) error {
	client := shop.Client(100 * time.Second) // nginx gives up before, and says why
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	l.began = time.Now()
	steady := vegeta.ConstantPacer{Freq: l.Rate, Per: time.Second}
	planned := max(1, uint64(float64(l.Rate)*l.Duration.Seconds()))
	for result := range attacker.Attack(l.next, pacer{steady, planned}, 0, "") {
		l.enter(result)
	}
	metrics, _ := shop.Metrics(ctx, l.OpsURL) // not every system has them
	l.memory = metrics["process_resident_memory_bytes"]
	return ctx.Err()
}

// next is a [vegeta.Targeter]. The fragment of a URL, which is not sent, tells which request it is.
func (l *load) next(t *vegeta.Target) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sent)
	q := l.plan(n)
	l.sent = append(l.sent, q)
	t.Method, t.URL = http.MethodPost, fmt.Sprintf("%s/v1%s#%d", q.base, q.path, n)
	t.Header, t.Body = l.shop.Header(q.key), []byte(q.body.String())
	return nil
}

// enter judges an answer by itself, keeps it, and makes what is acknowledged available to later
// requests.
func (l *load) enter(r *vegeta.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, fragment, _ := strings.Cut(r.URL, "#")
	n, _ := strconv.Atoi(fragment)
	q, sent := l.sent[n], r.Timestamp.Sub(l.began)
	var shown resource
	_ = json.Unmarshal(r.Body, &shown) // what is no resource shows nothing
	q.want.ID = shown.ID
	a := journal.Attempt{Invoke: sent, Return: sent + r.Latency, Account: l.APIKey, Key: q.key, Purpose: q.kind.name,
		Fingerprint: q.path + q.body.String(), Number: n, Via: q.base, Status: int(r.Code), Code: shop.ProblemCode(r.Body),
		Replayed: r.Headers.Get(idempotency.HeaderReplay) == "true", Resource: shown.ID,
		Body: fmt.Sprintf("%x", sha256.Sum256(r.Body))}
	if r.Code == 0 { // vegeta calls a refusal an error, too
		a.Error = r.Error
	}
	l.attempts = append(l.attempts, a)
	for _, name := range []journal.Purpose{q.kind.name, all} {
		if l.rows[name] == nil {
			l.rows[name] = &vegeta.Metrics{}
		}
		l.rows[name].Add(r)
	}
	if !q.kind.due(a) {
		l.complain(asDue, a.ID(), "%s: got %d %s %s", q.kind.name, a.Status, r.Body, a.Error)
	} else if a.Status == http.StatusCreated && !a.Replayed {
		l.answered = append(l.answered, q)
		if q.want.OrderID == "" {
			l.unpaid = append(l.unpaid, q.want)
		}
	}
	if a.Status == http.StatusCreated && shown.String() != q.want.String() {
		l.complain(asAsked, a.ID(), "%s: want %s, got %s", q.kind.name, q.want, r.Body)
	}
}

func (l *load) complain(rule books.Rule, about books.KeyID, format string, args ...any) {
	l.found = append(l.found, books.Broken(rule, format, args...).Of(about))
}
