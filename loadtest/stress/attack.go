package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// answerTimeout is above nginx's 95 s, so that the system gives up first and says why.
	answerTimeout = 100 * time.Second
	// memoryInterval is fine enough for a peak that matters.
	memoryInterval = time.Second
	residentMetric = "process_resident_memory_bytes"
)

// outcome is everything that one run found out, and the JSON report. Safe for concurrent use while
// the load runs.
type outcome struct {
	Run        string            `json:"run"`
	Rate       int               `json:"rate_per_second"`
	Duration   string            `json:"duration"`
	Rows       []*row            `json:"kinds"`   // as kinds, and then that of all requests
	Classes    []*row            `json:"classes"` // the same requests, by what was answered
	Effects    map[operation]int `json:"effects"` // distinct keys that were acknowledged
	Pace       punctual          `json:"pace"`
	Memory     map[string]uint64 `json:"peak_resident_bytes"` // by replica
	Events     *published        `json:"events,omitempty"`    // nil: they were not measured; lags in nanoseconds
	Violations []books.Violation `json:"findings"`
	Unread     string            `json:"unread,omitempty"` // why nothing was compared
	Passed     bool              `json:"passed"`

	cfg     config
	mu      sync.Mutex
	answers answers
	began   time.Time
	sent    map[uint64]time.Duration // since then, by sequence number
}

func newOutcome(cfg config, run string) *outcome {
	o := &outcome{Run: run, Rate: cfg.Rate, Duration: report.Short(cfg.Duration), Effects: map[operation]int{}, Memory: map[string]uint64{},
		cfg: cfg, answers: answers{}, began: time.Now(), sent: map[uint64]time.Duration{}}
	for _, r := range append(slices.Clone(kinds), row{Kind: "all"}) {
		o.Rows = append(o.Rows, &r)
	}
	for _, r := range classes {
		o.Classes = append(o.Classes, &r)
	}
	return o
}

// all is the row of all requests.
func (o *outcome) all() *row { return o.Rows[len(kinds)] }

// attack drives the load and checks every answer as it arrives. Every planned request is sent
// exactly once: repeating them is the plan's business.
func (o *outcome) attack(ctx context.Context, s *shop.Shop, out io.Writer) error {
	script := newScript(o.cfg, s)
	client := shop.Client(answerTimeout)
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client))
	o.began = time.Now()
	defer report.Progress(out, o.line)()
	defer o.watchMemory(ctx)()
	defer context.AfterFunc(ctx, func() { attacker.Stop() })() // the requests in flight are still awaited
	for result := range attacker.Attack(script.next, o.cfg.pace(), 0, "") {
		o.take(script, result)
	}
	return ctx.Err()
}

// take checks one result and lets the script go on from it.
func (o *outcome) take(s *script, result *vegeta.Result) {
	shot := s.take(result)
	o.mu.Lock()
	defer o.mu.Unlock()
	id, wrong := o.answers.record(shot.request, result)
	if id != "" && len(wrong) == 0 {
		s.acknowledged(shot, id)
	}
	o.Violations = append(o.Violations, wrong...)
	class, at := classOf(result, len(wrong) > 0), result.Timestamp.Sub(o.began)
	ofKind := o.Rows[slices.IndexFunc(kinds, func(r row) bool { return r.Kind == shot.kind })]
	for _, r := range []*row{ofKind, o.all(), o.Classes[class]} {
		r.add(spot{at, result.Latency}, class)
	}
	o.sent[result.Seq] = at
}

// line is how far the load is.
func (o *outcome) line() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all()
	return fmt.Sprintf("%4.0fs of %s  answered %d of %d  ok %d  unexpected %d  p99 %.1f ms", time.Since(o.began).Seconds(), o.cfg.Duration,
		all.Requests, o.cfg.requests(), all.OK, all.Unexpected, report.Milliseconds(percentile(all.answers, 99)))
}

// watchMemory follows the replicas' resident memory until it is stopped. A replica without this
// metric is left out: not every system has it.
func (o *outcome) watchMemory(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for ok := true; ok; ok = wait.Pause(ctx, memoryInterval) == nil {
			for name, url := range map[string]string{"api-1": o.cfg.Ops1URL, "api-2": o.cfg.Ops2URL} {
				if metrics, err := shop.Metrics(ctx, url); err == nil && metrics[residentMetric] > 0 {
					o.Memory[name] = max(o.Memory[name], uint64(metrics[residentMetric]))
				}
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}
