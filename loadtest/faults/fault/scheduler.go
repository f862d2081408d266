package fault

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// secondIn and thirdIn: one of secondIn draws has a second run, and one of thirdIn of those a
	// third.
	secondIn, thirdIn = 3, 4
)

// Scheduler draws runs. Not safe for concurrent use: a stack takes one command at a time.
type Scheduler struct {
	Target

	random *rand.Rand
	kinds  []Kind
	bag    []Kind // what was not drawn in this round
	swaps  int    // replicas replaced by one of the other release, so far
}

// NewScheduler draws by the seed, from the named kinds or else from all.
func NewScheduler(target Target, seed uint64, only ...string) (*Scheduler, error) {
	kinds, err := choose(target, only)
	return &Scheduler{Target: target, random: rand.New(rand.NewPCG(seed, 7)), kinds: kinds}, err
}

// Draw returns a run, and sometimes others to be injected beside it, in this order, which break
// other services. Each kind is drawn as often as its weight says, in random order, before the next
// round.
func (s *Scheduler) Draw() []*Run {
	runs := []*Run{s.next()}
	for _, in := range []int{secondIn, thirdIn} {
		if s.random.IntN(in) != 0 {
			break
		}
		if beside := s.beside(runs); beside != nil {
			runs = append(runs, beside)
		}
	}
	late := map[bool]int{false: 1} // what needs no traffic
	slices.SortStableFunc(runs, func(a, b *Run) int { return late[a.traffic] - late[b.traffic] })
	return runs
}

// next takes a run out of this round.
func (s *Scheduler) next() *Run {
	s.fill()
	k := s.bag[0]
	s.bag = s.bag[1:]
	return s.make(k)
}

// beside draws the next run if it fits to these, and returns nil otherwise.
func (s *Scheduler) beside(runs []*Run) *Run {
	s.fill()
	r := s.make(s.bag[0])
	clash := func(other *Run) bool { return other.Name == r.Name || overlap(other.victims, r.victims) }
	if slices.ContainsFunc(runs, clash) {
		return nil
	}
	s.bag = s.bag[1:]
	return r
}

func (s *Scheduler) fill() {
	if len(s.bag) > 0 {
		return
	}
	for _, k := range s.kinds {
		s.bag = append(s.bag, slices.Repeat([]Kind{k}, max(1, k.Weight))...)
	}
	s.random.Shuffle(len(s.bag), func(i, j int) { s.bag[i], s.bag[j] = s.bag[j], s.bag[i] })
}

// make draws a run of a kind, which adds what it has drawn to what the kind says.
func (s *Scheduler) make(k Kind) *Run {
	r := k.draw(s)
	k.Excuses = slices.Concat(k.Excuses, r.Excuses)
	r.Kind = k
	if r.Label == "" {
		r.Label = k.Name
	}
	if r.Hold == 0 {
		r.Hold = shortHold + time.Duration(s.random.Int64N(int64(longHold-shortHold)))
	}
	return r
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(victim string) bool { return slices.Contains(b, victim) })
}

// Pause draws the time between two draws.
func (s *Scheduler) Pause(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(s.random.Int64N(int64(longest-shortest)))
}

func (s *Scheduler) replica() string { return stack.Replicas[s.random.IntN(len(stack.Replicas))] }
