// Package admission decides which requests a replica works on now. A request holds a slot while it
// uses the replica and the database. What finds no free slot waits in a short queue, or is turned
// away at once if the queue has no room for it.
package admission

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// queuePerSlot bounds the queue, and with it the time in it: to about as many times what a
	// request takes. It bridges moments in which the machine or the database does something else.
	queuePerSlot = 8
	// patience bounds the time in the queue when nothing moves.
	patience = time.Second
	// places is how many requests at most hold no slot, because they are answered from a record or
	// wait for something outside. Each has a connection and a body in memory.
	places = 256
)

// Limiter hands out the slots of a replica. It is safe for concurrent use.
type Limiter struct {
	mu                   sync.Mutex
	slots, places        share
	queue                []*waiter // in the order of arrival
	queued               share
	admitted, turnedAway [classes]int64
}

// New makes a limiter with a number of slots, 2 or more.
func New(slots int) *Limiter {
	return &Limiter{
		slots: newShare(slots, mostOf(slots)), places: newShare(places, places/2),
		queued: newShare(slots*queuePerSlot, slots*queuePerSlot),
	}
}

// mostOf is what one account gets of something.
func mostOf(all int) int { return all - max(1, all/5) }

// waiter is a request in the queue.
type waiter struct {
	class   Class
	account uuid.UUID
	turn    chan *Slot // receives once: a slot, or nil if the request is turned away
}

// Enter returns a slot, which its caller must leave, or nil if the request is turned away. It asks
// whether the request's key is known only if no slot is free, while the request waits in the queue:
// such a request is answered from its record, without the database, so it needs a place and no
// slot. waits says that the request may wait for another attempt with its key; then it asks first.
func (l *Limiter) Enter(ctx context.Context, class Class, account uuid.UUID, waits bool, isKnown func(context.Context) bool) *Slot {
	if waits && isKnown(ctx) {
		slot := l.tryPlace(account)
		l.count(Begun, slot != nil)
		return slot
	}
	slot, w := l.tryOrQueue(class, account)
	switch {
	case slot != nil:
	case !waits && isKnown(ctx):
		class, slot = Begun, l.exchange(w)
	default:
		slot = l.wait(ctx, w)
	}
	l.count(class, slot != nil)
	return slot
}

// tryOrQueue returns a slot, or else a waiter: in the queue, or turned away already. That is
// decided at once, because a client that has no chance should not wait for its answer.
func (l *Limiter) tryOrQueue(class Class, account uuid.UUID) (*Slot, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots.take(account) {
		return &Slot{limiter: l, account: account}, nil
	}
	w := &waiter{class, account, make(chan *Slot, 1)}
	if l.hasRoom(class, account) {
		l.queued.force(account)
		l.queue = append(l.queue, w)
	} else {
		w.turn <- nil
	}
	return nil, w
}

// hasRoom reports whether the queue takes one more of a class. The last class may fill a quarter of
// it, the one before it half, and so on: what comes later and goes first finds room. One account
// gets four fifths of each. A payment without a place would hold its slot while the provider
// answers.
func (l *Limiter) hasRoom(class Class, account uuid.UUID) bool {
	room := l.queued.size * int(classes-class) / int(classes)
	return l.queued.used < room && l.queued.held[account] < mostOf(room) && (class != Money || l.places.has(account))
}

// wait returns a slot, or nil when the request is turned away, its patience ends, or its client is
// gone.
func (l *Limiter) wait(ctx context.Context, w *waiter) *Slot {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case slot := <-w.turn:
		return slot
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.giveUp(w)
}

// giveUp ends a wait. The slot may have come at the last moment.
func (l *Limiter) giveUp(w *waiter) *Slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remove(w) {
		return nil
	}
	return <-w.turn
}

// exchange gives up a waiter for a place, unless its slot has come.
func (l *Limiter) exchange(w *waiter) *Slot {
	if slot := l.giveUp(w); slot != nil {
		return slot
	}
	return l.tryPlace(w.account)
}

// tryPlace returns a slot that is only a place, or nil.
func (l *Limiter) tryPlace(account uuid.UUID) *Slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.places.take(account) {
		return nil
	}
	return &Slot{limiter: l, account: account, placed: true}
}

// release hands a slot to who waits: of those whose account may have one more, the first class,
// then the account that holds the fewest, then who came first. The caller holds the lock.
func (l *Limiter) release(account uuid.UUID) {
	l.slots.put(account)
	for {
		waiting := slices.DeleteFunc(slices.Clone(l.queue), func(w *waiter) bool { return !l.slots.has(w.account) })
		if len(waiting) == 0 {
			return
		}
		next := slices.MinFunc(waiting, func(a, b *waiter) int {
			return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(l.slots.held[a.account], l.slots.held[b.account]))
		})
		l.remove(next)
		l.slots.take(next.account)
		next.turn <- &Slot{limiter: l, account: next.account}
	}
}

// remove takes a waiter out of the queue. It reports whether it was there.
func (l *Limiter) remove(w *waiter) bool {
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	l.queued.put(w.account)
	return true
}

func (l *Limiter) count(class Class, admitted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if admitted {
		l.admitted[class]++
	} else {
		l.turnedAway[class]++
	}
}

// Stats are what a limiter has done, and what it holds now.
type Stats struct {
	Limit      int             // slots that there are
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
	s := Stats{Limit: l.slots.size, InUse: l.slots.used, Queued: len(l.queue), Placed: l.places.used,
		Admitted: map[Class]int64{}, TurnedAway: map[Class]int64{}}
	for _, class := range Classes {
		s.Admitted[class], s.TurnedAway[class] = l.admitted[class], l.turnedAway[class]
	}
	return s
}
