package admission

import (
	"context"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/google/uuid"
)

// Slot is the right of one request to be worked on. It is not safe for concurrent use.
type Slot struct {
	limiter     *Limiter
	account     uuid.UUID
	permit      adaptivelimiter.Permit // of the adaptive limit; nil: none
	fromReserve bool
	placed      bool // it is a place, and no slot
	parked      bool // it was parked at some time
}

// Leave ends the request. typical says that the time for which the slot was held tells how busy the
// database is: it was a change, and it succeeded.
func (s *Slot) Leave(typical bool) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.placed {
		l.releasePlace(s.account)
		return
	}
	l.release(s, typical && !s.parked)
}

// park gives the slot back for a place while the request waits for something outside. It returns
// nil if there is no place. unpark takes a slot again without waiting: what was begun is finished.
func (s *Slot) park() (unpark func()) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.placed:
		return func() {}
	case !l.takePlace(s.account):
		return nil
	}
	s.parked = true
	l.release(s, false)
	return s.unpark
}

func (s *Slot) unpark() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releasePlace(s.account)
	s.permit, _ = l.adaptive.TryAcquirePermit() // without a permit it is one more than the limit
	l.held[s.account]++
}

type slotKey struct{}

// WithSlot returns a context of a request that holds the slot.
func WithSlot(ctx context.Context, s *Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// Park gives the slot of the request that ctx belongs to back, while the request waits for the
// provider or for another attempt: such a wait uses neither processor nor database. The caller must
// call unpark when the wait is over. ok is false if too many requests wait already, of this account
// or in all; the slot is kept then. A context without a slot has nothing to give back.
func Park(ctx context.Context) (unpark func(), ok bool) {
	s, _ := ctx.Value(slotKey{}).(*Slot)
	if s == nil {
		return func() {}, true
	}
	if unpark = s.park(); unpark == nil {
		return func() {}, false
	}
	return unpark, true
}
