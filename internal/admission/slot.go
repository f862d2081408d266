package admission

import (
	"context"

	"github.com/google/uuid"
)

// Slot is the right of one request to be worked on. It is not safe for concurrent use.
type Slot struct {
	limiter *Limiter
	account uuid.UUID
	placed  bool // it is a place, and no slot
}

// Leave ends the request.
func (s *Slot) Leave() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.placed {
		l.places.put(s.account)
		return
	}
	l.release(s.account)
}

// park exchanges the slot for a place, if there is one.
func (s *Slot) park() (unpark func()) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.placed || !l.places.take(s.account) {
		return func() {}
	}
	s.placed = true
	l.release(s.account)
	return s.unpark
}

// unpark takes a slot without waiting: what was begun is finished.
func (s *Slot) unpark() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places.put(s.account)
	l.slots.force(s.account)
	s.placed = false
}

type slotKey struct{}

// WithSlot returns a context of a request that holds the slot.
func WithSlot(ctx context.Context, s *Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// Park gives the slot of the request that ctx belongs to back, while the request waits for the
// provider: that uses neither processor nor database. The caller must call unpark when the wait is
// over. The slot is kept if too many requests wait already, of this account or in all. A context
// without a slot has nothing to give back.
func Park(ctx context.Context) (unpark func()) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		return s.park()
	}
	return func() {}
}
