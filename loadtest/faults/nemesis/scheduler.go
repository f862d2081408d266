package nemesis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

const (
	// secondIn and thirdIn: of so many strikes one has a second fault, and of so many of those one has a third.
	secondIn, thirdIn = 3, 4
)

// Scheduler draws faults. Not safe for concurrent use: a stack takes one command at a time.
type Scheduler struct {
	target Target
	random *rand.Rand
	kinds  []kind
	bag    []kind // what was not drawn in this round
}

// NewScheduler draws by the seed, of the kinds that are named or else of all.
func NewScheduler(target Target, seed uint64, only ...string) (*Scheduler, error) {
	kinds, err := choose(kindsOf(target), only)
	if err != nil {
		return nil, err
	}
	return &Scheduler{target: target, random: rand.New(rand.NewPCG(seed, 7)), kinds: kinds}, nil
}

// Draw gives a fault, and now and then others beside it that hurt somebody else. They are to be injected in this order. Each kind is
// drawn its number of times, in random order, before the next round.
func (s *Scheduler) Draw() []*Fault {
	faults := []*Fault{s.next()}
	for _, in := range []int{secondIn, thirdIn} {
		if s.random.IntN(in) != 0 {
			break
		}
		if beside := s.beside(faults); beside != nil {
			faults = append(faults, beside)
		}
	}
	slices.SortStableFunc(faults, func(a, b *Fault) int { return cmp.Compare(order(a), order(b)) })
	return faults
}

func (s *Scheduler) next() *Fault {
	s.fill()
	k := s.bag[0]
	s.bag = s.bag[1:]
	return s.make(k)
}

// beside draws a fault that fits to those, and puts back what does not; nil when the next one does not.
func (s *Scheduler) beside(faults []*Fault) *Fault {
	s.fill()
	k := s.bag[0]
	f := s.make(k)
	if slices.ContainsFunc(faults, func(other *Fault) bool { return other.Kind == f.Kind || meet(other.victims, f.victims) }) {
		return nil
	}
	s.bag = s.bag[1:]
	return f
}

func (s *Scheduler) fill() {
	if len(s.bag) == 0 {
		for _, k := range s.kinds {
			s.bag = append(s.bag, slices.Repeat([]kind{k}, k.times())...)
		}
		s.random.Shuffle(len(s.bag), func(i, j int) { s.bag[i], s.bag[j] = s.bag[j], s.bag[i] })
	}
}

func (s *Scheduler) make(k kind) *Fault {
	f := k.draw(s)
	f.Kind = k.name
	if f.Name == "" {
		f.Name = k.name
	}
	if f.Hold == 0 {
		f.Hold = shortHold + time.Duration(s.random.Int64N(int64(longHold-shortHold)))
	}
	return f
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(victim string) bool { return slices.Contains(b, victim) })
}

func order(f *Fault) int {
	if f.needs {
		return 0
	}
	return 1
}

// Pause draws the time between two faults.
func (s *Scheduler) Pause(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(s.random.Int64N(int64(longest-shortest)))
}

func (s *Scheduler) replica() string { return stack.Replicas[s.random.IntN(len(stack.Replicas))] }
