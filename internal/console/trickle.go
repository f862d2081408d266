package console

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// trickleInterval is between two shoppers: enough to see a fault, and little for the machine.
	trickleInterval = 400 * time.Millisecond
	// maxTrickle bounds the shoppers that wait for an answer at a time.
	maxTrickle = 64
)

// What clients of the trickle saw.
const (
	sawPaid   = "paid"
	sawAgain  = "again" // an answer after which a shopper had to try again
	sawGaveUp = "gave up"
	sawReplay = "replayed"
)

// trickle is a steady trickle of shoppers, who order, pay and retry as they should. Safe for
// concurrent use.
type trickle struct {
	waiting atomic.Int64
	met     *counts[string]

	mu      sync.Mutex
	running context.Context // nil, or ended: it is off
	stop    context.CancelFunc
}

func newTrickle() *trickle { return &trickle{met: newCounts[string]()} }

// onRetry counts an answer after which a shopper tries again.
func (t *trickle) onRetry(int, string, time.Duration) { t.met.add(sawAgain, 1) }

// serveTrickle turns it on or off.
func (s *Server) serveTrickle(w http.ResponseWriter, _ *http.Request) {
	ctx, stop := s.trickle.turn(s.stopping)
	if ctx.Err() != nil {
		respond(w, "No more shoppers come.", nil)
		return
	}
	s.background.Go(func() { s.runTrickle(ctx, stop) })
	respond(w, "A shopper comes every "+trickleInterval.String()+", for as long as a page is open.", nil)
}

// turn turns it on, or off if it is on. The context ends when it is turned off.
func (t *trickle) turn(parent context.Context) (running context.Context, stop context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != nil && t.running.Err() == nil {
		t.stop()
	} else {
		t.running, t.stop = context.WithCancel(parent)
	}
	return t.running, t.stop
}

func (t *trickle) isOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running != nil && t.running.Err() == nil
}

func (s *Server) runTrickle(ctx context.Context, stop context.CancelFunc) {
	var shoppers errgroup.Group
	shoppers.SetLimit(maxTrickle)
	defer func() { _ = shoppers.Wait() }() // none fails
	tick := time.NewTicker(trickleInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.watched() {
			stop()
			return
		}
		shoppers.TryGo(func() error {
			s.shopOnce(ctx)
			return nil
		})
	}
}

// shopOnce is one shopper: an order and its payment, each repeated until there is an answer.
func (s *Server) shopOnce(ctx context.Context) {
	s.trickle.waiting.Add(1)
	defer s.trickle.waiting.Add(-1)
	order, err := s.trickling.order(ctx, "mug-white")
	var payment answer
	if err == nil {
		payment, err = s.trickling.pay(labelled(ctx, trickler, "pay with tok_visa"), stack.Nginx,
			purchase{Order: order, Key: newKey("pay"), Token: "tok_visa"})
	}
	switch {
	case err == nil && payment.Status == http.StatusCreated:
		s.trickle.met.add(sawPaid, 1)
	case ctx.Err() == nil:
		s.trickle.met.add(sawGaveUp, 1)
	}
	if payment.Replay {
		s.trickle.met.add(sawReplay, 1)
	}
}

// trickleView is what the page shows of it.
type trickleView struct {
	On                            bool
	Waiting                       int64
	Paid, Again, GaveUp, Replayed int
	Bars                          []chartBar
}

// chartBar is a second of the chart: what was paid, with what had to try again on top of it, and
// with those who gave up on top of both.
type chartBar struct{ X, Paid, Again, GaveUp int }

func (t *trickle) view() trickleView {
	v := trickleView{t.isOn(), t.waiting.Load(), t.met.all(sawPaid), t.met.all(sawAgain), t.met.all(sawGaveUp), t.met.all(sawReplay), nil}
	for x := range countedSeconds {
		ago := int64(countedSeconds - 1 - x)
		b := chartBar{X: x, Paid: t.met.sum(sawPaid, 1, ago)}
		b.Again = b.Paid + t.met.sum(sawAgain, 1, ago)
		b.GaveUp = b.Again + t.met.sum(sawGaveUp, 1, ago)
		if b.GaveUp > 0 {
			v.Bars = append(v.Bars, b)
		}
	}
	return v
}
