package admission

import (
	"context"

	"github.com/google/uuid"
)

// Slot is the right of one request to be worked on. It is not safe for concurrent use.
type Slot struct {
	limiter *Limiter
	account uuid.UUID
	active  bool   // it uses the processors and the database
	place   *share // which it holds a place of; nil: none
}

// Leave ends the request.
func (s *Slot) Leave() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	s.leavePlace()
	if s.active {
		s.active = false
		l.release(s.account)
	}
}

// takePlace reports whether there is one.
func (s *Slot) takePlace(of *share) bool {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if !of.take(s.account) {
		return false
	}
	s.place = of
	return true
}

// leavePlace needs the lock.
func (s *Slot) leavePlace() {
	if s.place != nil {
		s.place.put(s.account)
		s.place = nil
	}
}

// park releases the slot of a request that has a place.
func (s *Slot) park() (unpark func()) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.place == nil || !s.active {
		return func() {}
	}
	s.active = false
	l.release(s.account)
	return s.unpark
}

// unpark takes a slot without waiting: what was begun is finished.
func (s *Slot) unpark() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.force(s.account)
	s.active = true
}

type slotKey struct{}

// WithSlot returns a context of a request that holds the slot.
func WithSlot(ctx context.Context, s *Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// Park gives the slot of the request that ctx belongs to back, while the request waits for the
// provider: that uses neither processor nor database. The caller must call unpark when the wait is
// over. Only requests of the class [Money] give theirs back: the others have no place. A context
// without a slot has nothing to give back.
func Park(ctx context.Context) (unpark func()) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		return s.park()
	}
	return func() {}
}
