package admission

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// queue has the requests that wait for a slot, in the order of arrival. Its methods need the
// limiter's lock.
type queue struct {
	size    int
	waiting []*queued
	held    map[uuid.UUID]int   // requests in it by account; none that has none
	served  map[uuid.UUID]int64 // the turn in which an account in it was last served, or came
	turns   int64               // so far
}

func newQueue(size int) queue {
	return queue{size: size, held: map[uuid.UUID]int{}, served: map[uuid.UUID]int64{}}
}

// queued is a request in the queue.
type queued struct {
	class    Class
	slot     *Slot
	admitted chan bool // receives once: whether the slot is the request's now
}

// join reports whether the queue takes one more. The last class may fill a quarter of it, the one
// before it half, and so on: what comes later and goes first finds room. Beyond that an account has
// its equal part of that room, whatever the others have; if the queue is full, the newest request
// of the account that has most of it is turned away instead.
func (q *queue) join(one *queued) bool {
	account := one.slot.account
	room, accounts := q.size*int(classes-one.class)/int(classes), len(q.held)
	if q.held[account] == 0 {
		accounts++
	}
	switch {
	case len(q.waiting) < room:
	case q.held[account]*accounts >= room:
		return false
	case len(q.waiting) >= q.size:
		q.displace()
	}
	q.waiting = append(q.waiting, one)
	if q.held[account]++; q.held[account] == 1 {
		q.served[account] = q.turns // behind those who wait for their turn
	}
	return true
}

// displace turns the newest request of the largest holder away.
func (q *queue) displace() {
	most := slices.MaxFunc(q.waiting, func(a, b *queued) int {
		return cmp.Compare(q.held[a.slot.account], q.held[b.slot.account])
	}).slot.account
	for _, one := range slices.Backward(q.waiting) {
		if one.slot.account == most {
			q.remove(one)
			one.slot.leaveSeat()
			one.admitted <- false
			return
		}
	}
}

// remove reports whether the request was there.
func (q *queue) remove(one *queued) bool {
	i := slices.Index(q.waiting, one)
	if i < 0 {
		return false
	}
	account := one.slot.account
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if q.held[account]--; q.held[account] == 0 {
		delete(q.held, account)
		delete(q.served, account)
	}
	return true
}

// next returns who gets a free slot, or nil: of the accounts that may have one more, the one that
// holds the fewest, and of those the one that was served longest ago; of its requests, the first
// class, and then who came first. Classes do not count between accounts: otherwise one account's
// look-ups would go before all payments of the others.
func (q *queue) next(slots *share) *queued {
	var best *queued
	for _, one := range q.waiting {
		if slots.has(one.slot.account) && (best == nil || q.isBefore(one, best, slots)) {
			best = one
		}
	}
	if best == nil {
		return nil
	}
	q.turns++
	if q.remove(best); q.held[best.slot.account] > 0 {
		q.served[best.slot.account] = q.turns
	}
	return best
}

func (q *queue) isBefore(a, b *queued, slots *share) bool {
	return cmp.Or(
		cmp.Compare(slots.held[a.slot.account], slots.held[b.slot.account]),
		cmp.Compare(q.served[a.slot.account], q.served[b.slot.account]),
		cmp.Compare(a.class, b.class)) < 0
}
