package admission

import "github.com/google/uuid"

// share is something of which there is a number, and of which one account gets a part at most.
type share struct {
	size, each, used int
	held             map[uuid.UUID]int // by account; none that holds nothing
}

func newShare(size, each int) share { return share{size: size, each: each, held: map[uuid.UUID]int{}} }

// has reports whether there is one more for an account.
func (s *share) has(account uuid.UUID) bool { return s.used < s.size && s.held[account] < s.each }

// take takes one if there is one.
func (s *share) take(account uuid.UUID) bool {
	if !s.has(account) {
		return false
	}
	s.force(account)
	return true
}

// force takes one more than there is, if need be.
func (s *share) force(account uuid.UUID) {
	s.used++
	s.held[account]++
}

func (s *share) put(account uuid.UUID) {
	s.used--
	if s.held[account]--; s.held[account] == 0 {
		delete(s.held, account)
	}
}
