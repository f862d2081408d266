package main

import (
	"context"
	"fmt"
	"io"
	"maps"
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

// outcome is everything that one run found out. Safe for concurrent use while the load runs.
type outcome struct {
	mu         sync.Mutex
	answers    *answers
	began      time.Time
	rows       map[kind]*row
	total      *row
	classes    []*series // as in classes
	violations []books.Violation
	punctual   punctuality
	memory     map[string]uint64 // peak resident bytes by replica
	events     *published        // nil: they were not measured
	unread     error             // why there was no audit
}

func newOutcome(pace pacer) *outcome {
	o := &outcome{
		answers: newAnswers(), rows: map[kind]*row{}, total: &row{Kind: "all"}, memory: map[string]uint64{},
		punctual: punctuality{pace: pace, sent: map[uint64]time.Time{}},
	}
	for _, k := range kinds {
		o.rows[k] = &row{Kind: k}
	}
	for n, c := range classes {
		o.classes = append(o.classes, &series{class: c, number: n, row: &row{Kind: c.Name}})
	}
	return o
}

// attack drives the load and checks every answer as it arrives. Every planned request is sent
// exactly once: repeating them is the plan's business.
func attack(ctx context.Context, cfg config, s *shop.Shop, out io.Writer) (*outcome, error) {
	script := newScript(cfg, s)
	pace := pacer{rate: cfg.Rate, requests: uint64(cfg.requests())}
	client := shop.Client(answerTimeout)
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client))
	o := newOutcome(pace)
	o.began = time.Now()
	defer report.Progress(out, func() string { return o.line(cfg) })()
	defer o.watchMemory(ctx, cfg)()
	defer context.AfterFunc(ctx, func() { attacker.Stop() })() // the requests in flight are still awaited
	for result := range attacker.Attack(script.next, pace, 0, "") {
		if err := o.take(script, result); err != nil {
			return nil, err
		}
	}
	return o, ctx.Err()
}

// take checks one result and lets the script go on from it.
func (o *outcome) take(s *script, result *vegeta.Result) error {
	shot, err := s.take(result)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id, wrong := o.answers.record(shot.request, result)
	if id != "" && len(wrong) == 0 {
		s.acknowledged(shot, id)
	}
	o.violations = append(o.violations, wrong...)
	class := classOf(result, len(wrong) > 0)
	o.rows[shot.kind].add(result, class)
	o.total.add(result, class)
	o.classes[class].add(result.Timestamp.Sub(o.began), result)
	o.punctual.sent[result.Seq] = result.Timestamp
	return nil
}

// line is how far the load is.
func (o *outcome) line(cfg config) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	p99 := time.Duration(0)
	if o.total.Requests > 0 {
		p99 = o.total.metrics.Latencies.Quantile(0.99)
	}
	return fmt.Sprintf("%4.0fs of %s  answered %d of %d  ok %d  unexpected %d  p99 %.1f ms", time.Since(o.began).Seconds(), cfg.Duration,
		o.total.Requests, cfg.requests(), o.total.OK, o.total.Unexpected, ms(p99))
}

// watchMemory follows the replicas' resident memory until it is stopped. A replica without this
// metric is left out: not every system has it.
func (o *outcome) watchMemory(ctx context.Context, cfg config) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		peak := map[string]uint64{}
		for ok := true; ok; ok = wait.Pause(ctx, memoryInterval) == nil {
			for name, url := range map[string]string{"api-1": cfg.Ops1URL, "api-2": cfg.Ops2URL} {
				if metrics, err := shop.Metrics(ctx, url); err == nil && metrics[residentMetric] > 0 {
					peak[name] = max(peak[name], uint64(metrics[residentMetric]))
				}
			}
		}
		maps.Copy(o.memory, peak)
	})
	return func() { cancel(); watching.Wait() }
}
