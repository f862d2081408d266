package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

var networkKinds = each([]Kind{
	{
		Name: "redis cut off from one replica", Needs: SingleRedis, Excuses: redisUnreachable,
		draw: func(s *Scheduler) *Run { return s.partition(s.replica(), stack.Redis) },
	},
	{
		Name: "nginx cut off from one replica", Excuses: nginxCutOff,
		draw: func(s *Scheduler) *Run { return s.partition(stack.Nginx, s.replica()) },
	},
	{Name: "slow link", draw: (*Scheduler).slowLink},
	{Name: "answers cut in half", Excuses: nginxCutOff, draw: (*Scheduler).cutNginxAnswers},
	{Name: "inner answers cut in half", draw: (*Scheduler).cutInnerAnswers},
}, func(k *Kind) { k.Victim = Network })

// nginxCutOff are the promises that need nginx's connections to the replicas.
var nginxCutOff = []books.Rule{verify.WaitedFor, verify.ReplicaAvailable}

// link does something to the connections from one service to another.
func (s *Scheduler) link(label, verb, from, to string, args ...string) *Run {
	command := slices.Concat([]string{from, to}, args)
	return &Run{Label: label, inject: s.do(verb, command...), heal: s.do("heal", from, to)}
}

func (s *Scheduler) partition(from, to string) *Run {
	return s.link("cut "+from+" from "+to, "partition", from, to)
}

// slowAnswers delays a service's answers to one replica, by so many milliseconds at least.
func slowAnswers(name, service string, least int) draw {
	return func(s *Scheduler) *Run {
		replica, delay := s.replica(), time.Duration(least+s.random.IntN(3000))*time.Millisecond
		return s.link(fmt.Sprintf("%s answers %s after %s", name, replica, delay), "slow", replica, service, delay.String())
	}
}

// stores are the services whose links a run may slow down or cut; Sentinel's servers are not behind
// the proxy.
func (s *Scheduler) stores(others ...string) []string {
	if s.has(Sentinel) {
		return others
	}
	return slices.Concat(others, []string{stack.Redis})
}

// unreliable are the promises that need answers from a store in time.
func unreliable(store string) []books.Rule {
	return map[string][]books.Rule{stack.Redis: redisUnreachable, stack.Postgres: postgresUnreachable}[store]
}

func (s *Scheduler) slowLink() *Run {
	delays := map[string]string{stack.Postgres: "150ms", stack.Nginx: "500ms", stack.Redis: "80ms"}
	links := s.stores(stack.Postgres, stack.Nginx)
	replica, link := s.replica(), links[s.random.IntN(len(links))]
	r := s.link("slow "+replica+" and "+link, "slow", replica, link, delays[link])
	r.Excuses = unreliable(link)
	return r
}

// cutNginxAnswers closes connections to a replica in the middle of an answer.
func (s *Scheduler) cutNginxAnswers() *Run {
	replica := s.replica()
	return s.link("cut answers of "+replica, "cut", stack.Nginx, replica, fmt.Sprint(200+s.random.IntN(1500)))
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
	r := s.link("cut answers of "+link+" to "+replica, "cut", replica, link, fmt.Sprint(bytes))
	r.Excuses = unreliable(link)
	return r
}
