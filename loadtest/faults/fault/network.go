package fault

import (
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

var networkKinds = []Kind{
	{
		Name: "redis cut off from one replica", Victim: Network, Needs: SingleRedis,
		Excuses: redisUnreachable, draw: (*Scheduler).cutRedisOff,
	},
	{
		Name: "nginx cut off from one replica", Victim: Network,
		Excuses: []books.Rule{verify.WaitedFor, verify.ReplicaAvailable}, draw: (*Scheduler).cutNginxOff,
	},
	{Name: "slow link", Victim: Network, draw: (*Scheduler).slowLink},
	{
		Name: "answers cut in half", Victim: Network,
		Excuses: []books.Rule{verify.WaitedFor, verify.ReplicaAvailable}, draw: (*Scheduler).cutNginxAnswers,
	},
	{Name: "inner answers cut in half", Victim: Network, draw: (*Scheduler).cutInnerAnswers},
}

func (s *Scheduler) cutRedisOff() *Run { return s.partition(s.replica(), stack.Redis) }

func (s *Scheduler) cutNginxOff() *Run { return s.partition(stack.Nginx, s.replica()) }

func (s *Scheduler) partition(from, to string) *Run {
	return &Run{
		Label: "cut " + from + " from " + to, inject: s.do("partition", from, to),
		heal: s.do("heal", from, to),
	}
}

// stores are the services whose links a run may slow down or cut; Sentinel's servers are not behind
// the proxy.
func (s *Scheduler) stores(others ...string) []string {
	if s.target.has(Sentinel) {
		return others
	}
	return slices.Concat(others, []string{stack.Redis})
}

// unreliable are the promises that need answers from a store in time.
func unreliable(store string) []books.Rule {
	switch store {
	case stack.Redis:
		return redisUnreachable
	case stack.Postgres:
		return []books.Rule{verify.HangUpServed}
	}
	return nil
}

func (s *Scheduler) slowLink() *Run {
	delays := map[string]string{stack.Postgres: "150ms", stack.Nginx: "500ms", stack.Redis: "80ms"}
	links := s.stores(stack.Postgres, stack.Nginx)
	replica, link := s.replica(), links[s.random.IntN(len(links))]
	r := &Run{
		Label: "slow " + replica + " and " + link, inject: s.do("slow", replica, link, delays[link]),
		heal: s.do("heal", replica, link),
	}
	r.excuse(unreliable(link)...)
	return r
}

// cutNginxAnswers closes connections to a replica in the middle of an answer.
func (s *Scheduler) cutNginxAnswers() *Run {
	replica := s.replica()
	return &Run{
		Label:  "cut answers of " + replica,
		inject: s.do("cut", stack.Nginx, replica, fmt.Sprint(200+s.random.IntN(1500))),
		heal:   s.do("heal", stack.Nginx, replica),
	}
}

// cutInnerAnswers closes a replica's connections to its stores or its provider in the middle of an
// answer.
func (s *Scheduler) cutInnerAnswers() *Run {
	links := s.stores(stack.Postgres, stack.PSP)
	replica, link := s.replica(), links[s.random.IntN(len(links))]
	bytes := 200 + s.random.IntN(3000)
	if link == stack.Redis {
		bytes = 160 + bytes%250 // its greeting has 150, most of its answers have 5
	}
	r := &Run{
		Label:  "cut answers of " + link + " to " + replica,
		inject: s.do("cut", replica, link, fmt.Sprint(bytes)), heal: s.do("heal", replica, link),
	}
	r.excuse(unreliable(link)...)
	return r
}
