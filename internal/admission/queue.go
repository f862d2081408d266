package admission

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// waiter is a request in the queue.
type waiter struct {
	class   Class
	account uuid.UUID
	turn    chan *Slot // receives once: a slot, or nil if the request is turned away
}

// tryOrQueue returns a slot, or else a waiter: in the queue, or turned away already. That is
// decided at once, because a client that has no chance should not wait for its answer.
func (l *Limiter) tryOrQueue(class Class, account uuid.UUID) (*Slot, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slot := l.take(account); slot != nil {
		return slot, nil
	}
	w := &waiter{class, account, make(chan *Slot, 1)}
	if l.hasRoom(class) && (class != Money || l.placeFree(account)) {
		l.queue = append(l.queue, w)
	} else { // a payment without a place would hold its slot while the provider answers
		w.turn <- nil
	}
	return nil, w
}

// hasRoom reports whether the queue takes one more of a class. The last class may fill a quarter of
// it, the one before it half, and so on: what comes later and goes first finds room.
func (l *Limiter) hasRoom(class Class) bool {
	return len(l.queue) < l.adaptive.Limit()*queuePerSlot*int(classes-class)/int(classes)
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

// exchange gives up a waiter for a place, unless its slot has come.
func (l *Limiter) exchange(w *waiter) *Slot {
	if slot := l.giveUp(w); slot != nil {
		return slot
	}
	return l.tryPlace(w.account)
}

// inOrder sorts the queue by class, then by the slots that the accounts hold, then by arrival.
func (l *Limiter) inOrder() []*waiter {
	return slices.SortedStableFunc(slices.Values(l.queue), func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(l.held[a.account], l.held[b.account]))
	})
}

// grant hands free slots to those who wait. The caller holds the lock.
func (l *Limiter) grant() {
	for len(l.queue) > 0 && slices.ContainsFunc(l.inOrder(), l.grantTo) {
	}
}

// grantTo hands a waiter a slot if one is free for its account.
func (l *Limiter) grantTo(w *waiter) bool {
	slot := l.take(w.account)
	if slot == nil {
		return false
	}
	l.remove(w)
	w.turn <- slot
	return true
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
