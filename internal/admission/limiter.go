// Package admission decides which requests a replica works on now. A request holds a slot while it
// uses the replica and the database. How many slots there are follows from how long requests take
// (failsafe-go's adaptive limiter), and never exceeds what the pool of database connections can
// serve. What finds no free slot waits in a short queue, or is turned away at once if that is full.
package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/google/uuid"
)

const (
	// queuePerSlot bounds the queue, and with it the time in it: to about as many times what a
	// request takes. It bridges moments in which the machine or the database does something else.
	queuePerSlot = 8
	// patience bounds the time in the queue when nothing moves. Whoever has a chance is served long
	// before, and whoever has none does not get into the queue.
	patience = time.Second
	// fewest slots keep a replica busy while each of its requests waits for the database.
	fewest = 4
	// reservePart of the slots is kept for accounts that hold few.
	reservePart = 5
	// places is how many requests at most hold no slot, because they are answered from a record or
	// wait for something outside. Each has a connection and a body in memory.
	places = 256
	// window and samples are what the limit is adapted by: often enough to follow a burst. It is
	// compared with what is usual, over minutes: overload must not become usual.
	window, samples, usual = 250 * time.Millisecond, 50, 1000
	// afterglow is how long a limiter counts as busy after it turned a request away.
	afterglow = time.Second
)

// Limiter hands out the slots of a replica. It is safe for concurrent use.
type Limiter struct {
	mu         sync.Mutex
	adaptive   adaptivelimiter.AdaptiveLimiter[any]
	reserve    int               // slots beyond the adaptive limit, for accounts that hold few
	reserved   int               // slots of the reserve in use
	held       map[uuid.UUID]int // slots by account
	placed     map[uuid.UUID]int // places by account
	places     int               // places in use
	queue      []*waiter
	admitted   [classes]int64
	turnedAway [classes]int64
	refused    time.Time // when a request was turned away for the last time
}

// New makes a limiter with so many slots at most, 5 or more.
func New(most int) *Limiter {
	reserve := max(1, most/reservePart)
	limit := uint(max(fewest, most-reserve))
	return &Limiter{
		adaptive: adaptivelimiter.NewBuilder[any]().
			WithLimits(fewest, limit, limit).
			WithMaxLimitFactor(float64(limit)). // an idle replica keeps its limit
			WithRecentWindow(window, time.Minute, samples).
			WithBaselineWindow(usual).
			Build(),
		reserve: reserve, held: map[uuid.UUID]int{}, placed: map[uuid.UUID]int{},
	}
}

// Enter returns a slot, which its caller must leave, or nil if the request is turned away. It asks
// whether the request's key is known only if no slot is free, while the request waits in the queue:
// such a request is answered from its record, without the database, so it needs a place and no
// slot.
func (l *Limiter) Enter(ctx context.Context, class Class, account uuid.UUID, isKnown func(context.Context) bool) *Slot {
	slot, waiter := l.tryOrQueue(class, account)
	if slot == nil {
		if isKnown(ctx) {
			class, slot = Begun, l.exchange(waiter)
		} else {
			slot = l.wait(ctx, waiter)
		}
	}
	l.count(class, slot != nil)
	return slot
}

func (l *Limiter) count(class Class, admitted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if admitted {
		l.admitted[class]++
		return
	}
	l.turnedAway[class]++
	l.refused = time.Now()
}

// take returns a free slot or nil. The caller holds the lock.
func (l *Limiter) take(account uuid.UUID) *Slot {
	permit, ok := l.adaptive.TryAcquirePermit()
	if !ok {
		if l.reserved >= l.reserve || l.held[account] >= l.reserve {
			return nil
		}
		l.reserved++
	}
	l.held[account]++
	return &Slot{limiter: l, account: account, permit: permit, fromReserve: !ok}
}

// release returns a slot and hands it to who waits. The caller holds the lock.
func (l *Limiter) release(s *Slot, sample bool) {
	switch {
	case s.permit != nil && sample:
		s.permit.Record()
	case s.permit != nil:
		s.permit.Drop()
	case s.fromReserve:
		l.reserved--
	}
	s.permit, s.fromReserve = nil, false
	subtract(l.held, s.account)
	l.grant()
}

// tryPlace returns a slot that is only a place, or nil.
func (l *Limiter) tryPlace(account uuid.UUID) *Slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.takePlace(account) {
		return nil
	}
	return &Slot{limiter: l, account: account, placed: true}
}

// placeFree: one account has half of the places at most.
func (l *Limiter) placeFree(account uuid.UUID) bool {
	return l.places < places && l.placed[account] < places/2
}

func (l *Limiter) takePlace(account uuid.UUID) bool {
	if !l.placeFree(account) {
		return false
	}
	l.places++
	l.placed[account]++
	return true
}

func (l *Limiter) releasePlace(account uuid.UUID) {
	l.places--
	subtract(l.placed, account)
}

// subtract keeps no account that has nothing.
func subtract(counts map[uuid.UUID]int, account uuid.UUID) {
	if counts[account]--; counts[account] <= 0 {
		delete(counts, account)
	}
}

// Busy reports whether requests wait for slots, or were turned away a moment ago.
func (l *Limiter) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0 || time.Since(l.refused) < afterglow
}

// Stats are what a limiter has done, and what it holds now.
type Stats struct {
	Limit      int             // slots that there are now
	InUse      int             // slots that are held
	Queued     int             // requests that wait for one
	Placed     int             // requests that wait for something else, or are answered from a record
	Admitted   map[Class]int64 // since the start
	TurnedAway map[Class]int64
}

// Stats returns a snapshot.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Limit: l.adaptive.Limit() + l.reserve, Queued: len(l.queue), Placed: l.places,
		Admitted: map[Class]int64{}, TurnedAway: map[Class]int64{}}
	for _, n := range l.held {
		s.InUse += n
	}
	for _, class := range Classes {
		s.Admitted[class], s.TurnedAway[class] = l.admitted[class], l.turnedAway[class]
	}
	return s
}

// remove takes a waiter out of the queue. It reports whether it was there.
func (l *Limiter) remove(w *waiter) bool {
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}
