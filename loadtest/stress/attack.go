package main

import (
	"context"
	"io"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/loadtest/audit"
)

const (
	// answerTimeout is above nginx's 95 s, so that the system gives up first
	// and says why.
	answerTimeout = 100 * time.Second
	// idleTimeout is below what nginx and the replicas grant (60 s and more),
	// so that no request meets a connection that is just being closed.
	idleTimeout = 20 * time.Second
	// maxIdle keeps every connection that a burst has opened.
	maxIdle = 1000
)

// outcome is everything that one run found out.
type outcome struct {
	answers    *audit.Answers
	began      time.Time
	rows       map[kind]*row
	total      *row
	classes    []*series // as in classes
	violations []audit.Violation
	punctual   punctuality
	memory     map[string]uint64 // peak resident bytes by replica
	events     *audit.Events     // nil: they were not measured
	unread     error             // why there was no audit
}

// attack drives the load and checks every answer as it arrives.
func attack(ctx context.Context, cfg config, s *shop, out io.Writer) (*outcome, error) {
	script := newScript(cfg, s)
	pace := pacer{rate: cfg.Rate, requests: uint64(cfg.requests())}
	attacker := vegeta.NewAttacker(vegeta.Client(loadClient()))
	stopMemory := watchMemory(ctx, cfg, s.http)
	o := newOutcome(pace)

	show := newProgress(out, cfg)
	defer show.stop()
	o.began = time.Now()
	results := attacker.Attack(script.next, pace, 0, "")
	done := ctx.Done()
	for {
		select {
		case result, more := <-results:
			if !more {
				o.memory = stopMemory()
				show.last(o)
				return o, ctx.Err()
			}
			if err := o.take(script, result); err != nil {
				return nil, err
			}
		case <-show.tick():
			show.line(o)
		case <-done:
			attacker.Stop()
			done = nil // the requests in flight are still awaited
		}
	}
}

// loadClient sends every planned request exactly once: repeating them is the
// plan's business. Without the Transport net/http would send a request with an
// Idempotency-Key again by itself, if its connection had gone.
func loadClient() *http.Client {
	pool := &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout}
	return &http.Client{
		Timeout:   answerTimeout,
		Transport: &transport.Transport{Base: pool, MaxAttempts: 1, AttemptTimeout: -1},
	}
}

func newOutcome(pace pacer) *outcome {
	o := &outcome{
		answers: audit.NewAnswers(), rows: map[kind]*row{}, total: newRow("all"), classes: newSeries(),
		punctual: punctuality{pace: pace, sent: map[uint64]time.Time{}},
	}
	for _, k := range kinds {
		o.rows[k] = newRow(k)
	}
	return o
}

// take checks one result and lets the script go on from it.
func (o *outcome) take(s *script, result *vegeta.Result) error {
	shot, err := s.take(result)
	if err != nil {
		return err
	}
	answer := answerOf(result)
	id, wrong := o.answers.Record(shot.Request, answer)
	if id != "" && len(wrong) == 0 {
		s.acknowledged(shot, id)
	}
	o.violations = append(o.violations, wrong...)
	o.rows[shot.kind].add(result, answer, len(wrong) > 0)
	o.total.add(result, answer, len(wrong) > 0)
	o.classes[classOf(answer, len(wrong) > 0)].add(result.Timestamp.Sub(o.began), result, answer, len(wrong) > 0)
	o.punctual.add(result)
	return nil
}

func answerOf(result *vegeta.Result) audit.Answer {
	a := audit.Answer{
		Status: int(result.Code), Body: result.Body,
		Replayed: result.Headers.Get("X-Idempotent-Replay") == "true",
	}
	// vegeta calls every status from 400 on an error; ours are those in which
	// no whole answer came. It sets the status last.
	if a.Status == 0 {
		a.Err = result.Error
	}
	return a
}

// audit reads everything back and compares it with the answers.
func (o *outcome) audit(ctx context.Context, cfg config, s *shop) error {
	reader := audit.Reader{API: s.api, HTTP: s.http, ProviderURL: cfg.PSPURL}
	state, err := reader.Read(ctx, o.answers, s.opening)
	if err != nil {
		return err
	}
	if events, wanted := cfg.events(); wanted {
		if o.events, err = events.Read(ctx, s.opened); err != nil {
			return err
		}
		state.Events = o.events
	}
	o.violations = append(o.violations, audit.Check(o.answers, state)...)
	return nil
}
