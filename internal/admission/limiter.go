// Package admission decides which requests a replica works on now. A request holds a slot while it
// uses the replica and the database. What finds no free slot waits in a short queue, or is turned
// away at once if the queue has no room for it.
package admission

import (
	"context"
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
	// maxReading is how many bodies are read at a time: of 64 KiB each at most.
	maxReading = 256
	// maxReplays is how many requests at most are answered from a record at a time.
	maxReplays = 256
	// piece, in bytes, is what answers that clients have not read are counted in. maxSmall is how
	// many answers of one piece at most may be unread, and maxLarge how many pieces of larger ones:
	// 32 MiB. One account that reads nothing gets half of each.
	piece, maxSmall, maxLarge = 64 << 10, 256, 512
)

// Limiter hands out the slots of a replica. It is safe for concurrent use.
type Limiter struct {
	mu                        sync.Mutex
	slots                     share
	waiting, replays, reading share // seats
	small, large              share // pieces of answers
	queue                     queue
	admitted, turnedAway      [classes]int64
}

// New makes a limiter with a number of slots, 2 or more.
func New(slots int) *Limiter {
	return &Limiter{slots: newShare(slots, 5), queue: newQueue(slots * queuePerSlot),
		waiting: newShare(maxWaiting, 1), replays: newShare(maxReplays, 1), reading: newShare(maxReading, 1), small: newShare(maxSmall, 1), large: newShare(maxLarge, 1)}
}

// Read returns a function that ends the reading of a request's body, or nil if too many are being
// read: each takes memory, and a client decides for how long.
func (l *Limiter) Read(account uuid.UUID) (end func()) {
	slot := &Slot{limiter: l, account: account}
	if !slot.takeSeat(&l.reading) {
		return nil
	}
	return slot.Leave
}

// Enter returns a slot, which its caller must leave, or nil if the request is turned away. It looks
// at the request's key only if no slot is free, while the request waits in the queue: a request
// whose key is known is answered from its record, without the database, so it needs a seat and no
// slot. waits says that the request may wait for another attempt with its key; then it looks first.
func (l *Limiter) Enter(ctx context.Context, class Class, account uuid.UUID, waits bool, look func(context.Context) Key) *Slot {
	slot := &Slot{limiter: l, account: account}
	key, admitted := Unknown, false
	if waits {
		key = look(ctx)
	}
	if key == InProgress {
		class, admitted = Begun, slot.takeSeat(&l.waiting)
	} else if key == Answered {
		class, admitted = Begun, slot.takeSeat(&l.replays)
	} else if q := l.takeOrQueue(slot, class); q == nil {
		admitted = true
	} else if !waits && look(ctx) != Unknown {
		class, admitted = Begun, l.giveUp(q) || slot.takeSeat(&l.replays)
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
// for its answer. What may wait for the provider needs a seat for that beforehand: without one it
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
		slot.seat = &l.waiting
	}
	switch {
	case class == List && l.large.isNearlyFull(slot.account): // its answer would probably be refused
		q.admitted <- false
	case l.slots.take(slot.account):
		slot.active = true
		return nil
	case l.queue.join(q):
	default:
		slot.leaveSeat()
		q.admitted <- false
	}
	return q
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
	if l.queue.remove(q) {
		q.slot.leaveSeat()
		return false
	}
	return <-q.admitted
}

// release hands a slot to who waits. The caller holds the lock.
func (l *Limiter) release(account uuid.UUID) {
	l.slots.put(account)
	for next := l.queue.next(&l.slots); next != nil; next = l.queue.next(&l.slots) {
		l.slots.force(next.slot.account)
		next.slot.active = true
		next.admitted <- true
	}
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
	Reading    int             // requests whose body is being read
	Unread     int             // pieces of 64 KiB of answers that are being sent
	Admitted   map[Class]int64 // since the start
	TurnedAway map[Class]int64
}

// Stats returns a snapshot.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Limit: l.slots.size, InUse: l.slots.used, Queued: len(l.queue.waiting), Waiting: l.waiting.used, Replays: l.replays.used, Reading: l.reading.used, Unread: l.small.used + l.large.used,
		Admitted: map[Class]int64{}, TurnedAway: map[Class]int64{}}
	for _, class := range Classes {
		s.Admitted[class], s.TurnedAway[class] = l.admitted[class], l.turnedAway[class]
	}
	return s
}
