package nemesis

import (
	"fmt"

	"github.com/oncepay/oncepay/internal/stack"
)

func (s *Scheduler) cutRedisOff() *Fault { return s.partition(s.replica(), stack.Redis) }

func (s *Scheduler) cutNginxOff() *Fault { return s.partition(stack.Nginx, s.replica()) }

func (s *Scheduler) partition(from, to string) *Fault {
	return &Fault{Name: "cut " + from + " from " + to, inject: s.do("partition", from, to), heal: s.do("heal", from, to)}
}

func (s *Scheduler) slow() *Fault {
	links := [][2]string{{stack.Postgres, "150ms"}, {stack.Nginx, "500ms"}}
	if !s.target.Sentinel {
		links = append(links, [2]string{stack.Redis, "80ms"})
	}
	r, link := s.replica(), links[s.random.IntN(len(links))]
	return &Fault{Name: "slow " + r + " and " + link[0], inject: s.do("slow", r, link[0], link[1]), heal: s.do("heal", r, link[0])}
}

// cutNginxAnswers ends connections to a replica in the middle of an answer.
func (s *Scheduler) cutNginxAnswers() *Fault {
	r := s.replica()
	return &Fault{Name: "cut answers of " + r,
		inject: s.do("cut", stack.Nginx, r, fmt.Sprint(200+s.random.IntN(1500))), heal: s.do("heal", stack.Nginx, r)}
}

// cutInnerAnswers ends a replica's connections to what it needs in the middle of an answer.
func (s *Scheduler) cutInnerAnswers() *Fault {
	links := []string{stack.Postgres, stack.PSP}
	if !s.target.Sentinel {
		links = append(links, stack.Redis)
	}
	r, link := s.replica(), links[s.random.IntN(len(links))]
	bytes := 200 + s.random.IntN(3000)
	if link == stack.Redis {
		bytes = 160 + bytes%250 // its greeting has 150, most of its answers have 5
	}
	return &Fault{Name: "cut answers of " + link + " to " + r,
		inject: s.do("cut", r, link, fmt.Sprint(bytes)), heal: s.do("heal", r, link)}
}
