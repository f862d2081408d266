package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// trickleInterval is between two shoppers: enough to see a fault, and little for the machine.
	trickleInterval = 400 * time.Millisecond
	// trickleBars is how many seconds the chart shows.
	trickleBars = 60
	// maxTrickle bounds the shoppers that wait for an answer at a time.
	maxTrickle = 64
)

// trickle is a steady trickle of shoppers, who order, pay and retry as they should. Safe for
// concurrent use.
type trickle struct {
	mu      sync.Mutex
	stop    context.CancelFunc // nil: it is off
	waiting int
	bars    map[int64]bar
	total   bar
}

// bar counts what clients saw in one second.
type bar struct {
	Good    int // orders that were paid
	Again   int // answers after which they had to try again
	Failed  int // shoppers who gave up
	Replays int
}

func newTrickle() *trickle { return &trickle{bars: map[int64]bar{}} }

func (t *trickle) count(change func(*bar)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now().Unix()
	b := t.bars[now]
	change(&b)
	t.bars[now] = b
	change(&t.total)
	for second := range t.bars {
		if second < now-trickleBars {
			delete(t.bars, second)
		}
	}
}

// onRetry counts an answer after which a shopper tries again.
func (t *trickle) onRetry(int, string, time.Duration) { t.count(func(b *bar) { b.Again++ }) }

// serveTrickle turns it on or off.
func (s *Server) serveTrickle(w http.ResponseWriter, _ *http.Request) {
	ctx, on := s.trickle.turn(s.stopping)
	if !on {
		respond(w, "No more shoppers come.", nil)
		return
	}
	s.background.Go(func() { s.runTrickle(ctx) })
	respond(w, "A shopper comes every "+trickleInterval.String()+", for as long as a page is open.", nil)
}

// turn turns it on, or off if it is on. The context ends when it is turned off.
func (t *trickle) turn(parent context.Context) (ctx context.Context, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.off() {
		return nil, false
	}
	ctx, t.stop = context.WithCancel(parent)
	return ctx, true
}

func (t *trickle) halt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.off()
}

// off reports whether it was on. It needs the lock.
func (t *trickle) off() bool {
	if t.stop == nil {
		return false
	}
	t.stop()
	t.stop = nil
	return true
}

func (s *Server) runTrickle(ctx context.Context) {
	var shoppers sync.WaitGroup
	defer shoppers.Wait()
	tick := time.NewTicker(trickleInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.live.watched() {
			s.trickle.halt()
			return
		}
		if s.trickle.enter() {
			shoppers.Go(func() { s.shopOnce(ctx) })
		}
	}
}

func (t *trickle) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting >= maxTrickle {
		return false
	}
	t.waiting++
	return true
}

func (t *trickle) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
}

// shopOnce is one shopper: an order and its payment, each repeated until there is an answer.
func (s *Server) shopOnce(ctx context.Context) {
	defer s.trickle.leave()
	order, err := s.trickling.order(ctx, "mug-white")
	var paid answer
	if err == nil {
		paid, err = s.trickling.pay(labelled(ctx, trickler, "pay with tok_visa"), stack.Nginx,
			purchase{Order: order, Key: newKey("pay"), Token: "tok_visa"})
	}
	s.trickle.count(func(b *bar) {
		switch {
		case err == nil && paid.Status == http.StatusCreated:
			b.Good++
		case ctx.Err() == nil:
			b.Failed++
		}
		if paid.Replay {
			b.Replays++
		}
	})
}

// trickleView is what the page shows of it.
type trickleView struct {
	On      bool
	Waiting int
	Total   bar
	Bars    []chartBar
}

// chartBar is a second of the chart: three heights, from the bottom up.
type chartBar struct {
	X                          int
	GoodY, Good, AgainY, Again int
	FailedY, Failed            int
}

// trickleChart is the height of the chart; a request is so many units of it.
const (
	trickleChart = 48
	trickleUnit  = 5
)

func (t *trickle) view() trickleView {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := trickleView{On: t.stop != nil, Waiting: t.waiting, Total: t.total}
	now := time.Now().Unix()
	for i := range int64(trickleBars) {
		if b, ok := t.bars[now-trickleBars+i]; ok {
			v.Bars = append(v.Bars, b.chart(int(i)))
		}
	}
	return v
}

func (b bar) chart(at int) chartBar {
	good, again, failed := b.Good*trickleUnit, b.Again*trickleUnit, b.Failed*trickleUnit
	c := chartBar{X: at * 10, Good: good, Again: again, Failed: failed}
	c.GoodY = trickleChart - good
	c.AgainY = c.GoodY - again
	c.FailedY = c.AgainY - failed
	return c
}
