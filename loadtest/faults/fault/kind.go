// Package fault breaks a running stack in the ways that production breaks, one or more at a time,
// on a schedule that follows from a seed, and repairs it again. Each file has the kinds of one
// victim; the catalogue joins them. See the README beside this package for how to add one.
package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
)

// A Kind is one way to break a stack. It says everything that the campaign needs to know about it,
// so that adding one changes one file.
type Kind struct {
	Name   string
	Needs  Need // what the stack must have
	Weight int  // how often it is drawn per round; 0 means once
	Breaks []Damage
	// Excuses are the promises that need not hold while a run of this kind lasts. A kind that
	// excuses nothing is held to every promise.
	Excuses []books.Rule
	Hold    time.Duration // how long a run lasts; 0: it is drawn
	// Counts says that Hits of a run is set: how many answers, events or requests it met, by Heal.
	Counts bool

	// command is one of the stack's switchboard, or several with semicolons between them, which
	// Heal takes back. In it 1..3 is a number from 1 to 3.
	command string
	draw    draw     // what a run does, if there is no command or more than that
	victims []string // services that another run must leave alone, besides those of the command
	// traffic says that it needs requests that reach their replicas, so it is injected first.
	traffic bool
}

// draw completes a run, with choices from the scheduler's source.
type draw = func(*Scheduler, *Run)

// Need is what a stack must have for a kind.
type Need string

// The needs. The empty one is met by every stack.
const (
	SingleRedis Need = "a single Redis"
	Sentinel    Need = "Redis with Sentinel"
	SyncStandby Need = "PostgreSQL with a synchronous standby"
	// EarlierRelease runs at both replicas when the campaign begins, with its own schema.
	EarlierRelease Need = "an earlier release"
)

// Damage is an effect of a fault that some check has to know about.
type Damage string

// The damages.
const (
	RedisDown       Damage = "Redis is down"    // nothing listens: what moves money is refused
	RedisLoses      Damage = "Redis loses data" // and with it events that were published
	Overloads       Damage = "more is asked than can be done"
	PaymentsWait    Damage = "hundreds of payments wait for the provider"
	StaysUnfinished Damage = "thousands of requests stay unfinished"
	StaysUnread     Damage = "hundreds of answers stay unread"
	AccountFloods   Damage = "one account asks for more than its share"
	StrangersFlood  Damage = "strangers send unknown API keys"
	RelayRepeats    Damage = "a relay publishes twice" // it died after publishing, before advancing
)

// catalogue has every kind once.
var catalogue = slices.Concat(replicaKinds, requestKinds, upgradeKinds, redisKinds, sentinelKinds, postgresKinds, standbyKinds, providerKinds, mailKinds,
	networkKinds, clientKinds)

// kindsOf are those that a target can run.
func kindsOf(target Target) []Kind {
	return slices.DeleteFunc(slices.Clone(catalogue), func(k Kind) bool { return !target.has(k.Needs) })
}

// Kinds are the names of all kinds that a target can run.
func Kinds(target Target) (names []string) {
	for _, k := range kindsOf(target) {
		names = append(names, k.Name)
	}
	return names
}

// each changes kinds that have something in common.
func each(kinds []Kind, change func(*Kind)) []Kind {
	for i := range kinds {
		change(&kinds[i])
	}
	return kinds
}

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
	// master and copy are the two servers of Redis as they were before a run; see ready.
	master, copy string
}

// NewScheduler draws by the seed, from the named kinds or else from all.
func NewScheduler(target Target, seed uint64, only ...string) (*Scheduler, error) {
	kinds := kindsOf(target)
	for _, name := range only {
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name }) {
			return nil, fmt.Errorf("no kind of fault is called %q; these are: %q", name, Kinds(target))
		}
	}
	if len(only) > 0 {
		kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return !slices.Contains(only, k.Name) })
	}
	return &Scheduler{Target: target, random: rand.New(rand.NewPCG(seed, 7)), kinds: kinds}, nil
}

// Draw returns a run, and sometimes others to be injected beside it, in this order, which break
// other services. Each kind is drawn as often as its weight says, in random order, before the next
// round.
func (s *Scheduler) Draw() []*Run {
	runs := []*Run{s.beside()}
	for _, in := range []int{secondIn, thirdIn} {
		if s.random.IntN(in) != 0 {
			break
		}
		if beside := s.beside(runs...); beside != nil {
			runs = append(runs, beside)
		}
	}
	late := map[bool]int{false: 1} // what needs no traffic
	slices.SortStableFunc(runs, func(a, b *Run) int { return late[a.traffic] - late[b.traffic] })
	return runs
}

// beside takes the next run out of this round if it fits to these, and returns nil otherwise.
func (s *Scheduler) beside(runs ...*Run) *Run {
	if len(s.bag) == 0 {
		for _, k := range s.kinds {
			s.bag = append(s.bag, slices.Repeat([]Kind{k}, max(1, k.Weight))...)
		}
		s.random.Shuffle(len(s.bag), func(i, j int) { s.bag[i], s.bag[j] = s.bag[j], s.bag[i] })
	}
	r := s.make(s.bag[0])
	clash := func(other *Run) bool { return other.Name == r.Name || overlap(other.victims, r.victims) }
	if slices.ContainsFunc(runs, clash) {
		return nil
	}
	s.bag = s.bag[1:]
	return r
}

// make draws a run of a kind.
func (s *Scheduler) make(k Kind) *Run {
	r := &Run{Kind: k, Label: k.Name, Heal: steps()} // which does nothing
	if k.command != "" {
		s.command(r, k.command)
	}
	if k.draw != nil {
		k.draw(s, r)
	}
	if r.Hold == 0 {
		r.Hold = s.Pause(shortHold, longHold)
	}
	if overlap(r.victims, stack.Replicas) {
		r.Rank = 1
	}
	if k.Needs == Sentinel && slices.Contains(k.victims, stack.Redis) {
		r.prepare = s.ready
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

func (s *Scheduler) replica() string { return oneOf(s, stack.Replicas...) }

func oneOf(s *Scheduler, names ...string) string { return names[s.random.IntN(len(names))] }
