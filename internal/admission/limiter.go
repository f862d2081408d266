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
	// maxWaiting is how many requests at most may wait for something outside: for the provider, or
	// for another attempt. Each has a connection and a body in memory.
	maxWaiting = 256
	// maxReplays is how many requests at most are answered from a record at a time.
	maxReplays = 256
)

// Limiter hands out the slots of a replica. It is safe for concurrent use.
type Limiter struct {
	mu                   sync.Mutex
	slots                share
	waiting, replays     share     // places
	queue                []*queued // in the order of arrival
	queued               share
	admitted, turnedAway [classes]int64
}

// New makes a limiter with a number of slots, 2 or more.
func New(slots int) *Limiter {
	return &Limiter{
		slots: newShare(slots, mostOf(slots)), queued: newShare(slots*queuePerSlot, slots*queuePerSlot),
		waiting: newShare(maxWaiting, maxWaiting/2), replays: newShare(maxReplays, maxReplays/2),
	}
}

// mostOf is what one account gets of something.
func mostOf(all int) int { return all - max(1, all/5) }

// queued is a request in the queue.
type queued struct {
	class    Class
	slot     *Slot
	admitted chan bool // receives once: whether the slot is the request's now
}

// Enter returns a slot, which its caller must leave, or nil if the request is turned away. It looks
// at the request's key only if no slot is free, while the request waits in the queue: a request
// whose key is known is answered from its record, without the database, so it needs a place and no
// slot. waits says that the request may wait for another attempt with its key; then it looks first.
func (l *Limiter) Enter(ctx context.Context, class Class, account uuid.UUID, waits bool, look func(context.Context) Key) *Slot {
	slot := &Slot{limiter: l, account: account}
	key, admitted := Unknown, false
	if waits {
		key = look(ctx)
	}
	if key == InProgress {
		class, admitted = Begun, slot.takePlace(&l.waiting)
	} else if key == Answered {
		class, admitted = Begun, slot.takePlace(&l.replays)
	} else if q := l.takeOrQueue(slot, class); q == nil {
		admitted = true
	} else if !waits && look(ctx) != Unknown {
		class, admitted = Begun, l.giveUp(q) || slot.takePlace(&l.replays)
	} else {
		admitted = l.wait(ctx, q)
	}
	l.count(class, admitted)
	if !admitted {
		return nil
	}
	return slot
}

// takeOrQueue returns nil when the request has its slot, or else a request that is queued, or
// turned away already. That is decided at once, because a client that has no chance should not wait
// for its answer. What may wait for the provider needs a place for that beforehand: without one it
// would keep its slot.
func (l *Limiter) takeOrQueue(slot *Slot, class Class) *queued {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &queued{class, slot, make(chan bool, 1)}
	if class == Money {
		if !l.waiting.take(slot.account) {
			q.admitted <- false
			return q
		}
		slot.place = &l.waiting
	}
	switch {
	case l.slots.take(slot.account):
		slot.active = true
		return nil
	case l.hasRoom(class, slot.account):
		l.queued.force(slot.account)
		l.queue = append(l.queue, q)
	default:
		slot.leavePlace()
		q.admitted <- false
	}
	return q
}

// hasRoom reports whether the queue takes one more of a class. The last class may fill a quarter of
// it, the one before it half, and so on: what comes later and goes first finds room. One account
// gets four fifths of each.
func (l *Limiter) hasRoom(class Class, account uuid.UUID) bool {
	room := l.queued.size * int(classes-class) / int(classes)
	return l.queued.used < room && l.queued.held[account] < mostOf(room)
}

// wait reports whether the slot came before the request's patience ended, or its client left.
func (l *Limiter) wait(ctx context.Context, q *queued) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case admitted := <-q.admitted:
		return admitted
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.giveUp(q)
}

// giveUp ends a wait. It reports whether the slot has come at the last moment.
func (l *Limiter) giveUp(q *queued) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remove(q) {
		q.slot.leavePlace()
		return false
	}
	return <-q.admitted
}

// release hands a slot to who waits: of those whose account may have one more, the first class,
// then the account that holds the fewest, then who came first. The caller holds the lock.
func (l *Limiter) release(account uuid.UUID) {
	l.slots.put(account)
	for {
		able := slices.DeleteFunc(slices.Clone(l.queue), func(q *queued) bool { return !l.slots.has(q.slot.account) })
		if len(able) == 0 {
			return
		}
		next := slices.MinFunc(able, func(a, b *queued) int {
			return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(l.slots.held[a.slot.account], l.slots.held[b.slot.account]))
		})
		l.remove(next)
		l.slots.force(next.slot.account)
		next.slot.active = true
		next.admitted <- true
	}
}

// remove takes a request out of the queue. It reports whether it was there.
func (l *Limiter) remove(q *queued) bool {
	i := slices.Index(l.queue, q)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	l.queued.put(q.slot.account)
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
	Waiting    int             // requests that wait, or may wait, for something outside
	Replays    int             // requests that are answered from a record
	Admitted   map[Class]int64 // since the start
	TurnedAway map[Class]int64
}

// Stats returns a snapshot.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Limit: l.slots.size, InUse: l.slots.used, Queued: len(l.queue), Waiting: l.waiting.used, Replays: l.replays.used,
		Admitted: map[Class]int64{}, TurnedAway: map[Class]int64{}}
	for _, class := range Classes {
		s.Admitted[class], s.TurnedAway[class] = l.admitted[class], l.turnedAway[class]
	}
	return s
}
