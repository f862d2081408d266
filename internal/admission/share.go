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

func (s *share) put(account uuid.UUID) { s.putAll(account, 1) }

// takeAll takes n at once, if there are as many and the account may have the last of them. One that
// holds none may have all that is free.
func (s *share) takeAll(account uuid.UUID, n int) bool {
	free, held := s.size-s.used, s.held[account]
	if free < n || held > 0 && held+n > s.multiple*(free-n) {
		return false
	}
	s.used += n
	s.held[account] += n
	return true
}

// isNearlyFull reports whether an account has half of what it may have.
func (s *share) isNearlyFull(account uuid.UUID) bool {
	return 2*s.held[account] > s.multiple*(s.size-s.used)
}

func (s *share) putAll(account uuid.UUID, n int) {
	s.used -= n
	if s.held[account] -= n; s.held[account] == 0 {
		delete(s.held, account)
	}
}
