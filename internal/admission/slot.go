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
	seat    *share // which it holds a seat of; nil: none
	sends   *share // which its answer holds pieces of; nil: it is not there yet
	pieces  int
}

// Leave ends the request.
func (s *Slot) Leave() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.sends != nil {
		s.sends.putAll(s.account, s.pieces)
		s.sends = nil
	}
	s.stopWorking()
}

// Answer gives back all that the request holds once its answer, of so many bytes, is ready: how
// long a client reads is for the client to say. Until Leave the answer counts as unread. Answer
// reports false, and gives nothing back, if the account has too much unread. Call it once.
func (s *Slot) Answer(bytes int) bool {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	sends, pieces := &l.small, 1
	if bytes > piece {
		sends, pieces = &l.large, (bytes+piece-1)/piece
	}
	if !sends.takeAll(s.account, pieces) {
		return false
	}
	s.sends, s.pieces = sends, pieces
	s.stopWorking()
	return true
}

// stopWorking needs the lock.
func (s *Slot) stopWorking() {
	l := s.limiter
	s.leaveSeat()
	if s.active {
		s.active = false
		l.release(s.account)
	}
}

// takeSeat reports whether there is one.
func (s *Slot) takeSeat(of *share) bool {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if !of.take(s.account) {
		return false
	}
	s.seat = of
	return true
}

// leaveSeat needs the lock.
func (s *Slot) leaveSeat() {
	if s.seat != nil {
		s.seat.put(s.account)
		s.seat = nil
	}
}

// park releases the slot of a request that has a seat.
func (s *Slot) park() (unpark func()) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.seat == nil || !s.active {
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
// over. Only requests of the class [Money] give theirs back: the others have no seat. A context
// without a slot has nothing to give back.
func Park(ctx context.Context) (unpark func()) {
	if s, ok := ctx.Value(slotKey{}).(*Slot); ok {
		return s.park()
	}
	return func() {}
}
