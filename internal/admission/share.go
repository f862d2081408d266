package admission

import "github.com/google/uuid"

// share is something of which there is a number. An account gets more of it while it holds less
// than a multiple of what would then be free: one account alone gets a part, any number of greedy
// ones get the same each, and who comes new finds one free (A. Choudhury and E. Hahne, "Dynamic
// Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking
// 6(2), 1998).
type share struct {
	size, used int
	multiple   int               // 1: one account alone gets half; 5: about four fifths
	held       map[uuid.UUID]int // by account; none that holds nothing
}

func newShare(size, multiple int) share {
	return share{size: size, multiple: multiple, held: map[uuid.UUID]int{}}
}

// has reports whether there is one more for an account.
func (s *share) has(account uuid.UUID) bool {
	free, held := s.size-s.used, s.held[account]
	return free > 0 && (held == 0 || held < s.multiple*(free-1))
}

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
