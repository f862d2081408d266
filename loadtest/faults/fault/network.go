package fault

import (
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

var networkKinds = []Kind{
	{Name: "redis cut off from one replica", Needs: SingleRedis, Excuses: redisUnreachable, command: "partition api-1..2 redis"},
	{Name: "nginx cut off from one replica", Excuses: nginxCutOff, command: "partition nginx api-1..2"},
	{Name: "slow link", draw: link("slow api-1..2 postgres 150ms", "slow api-1..2 nginx 500ms", "slow api-1..2 redis 80ms")},
	{Name: "answers cut in half", Excuses: nginxCutOff, command: "cut nginx api-1..2 200..1700"},
	// The greeting of Redis has 150 bytes, and most of its answers have 5.
	{Name: "inner answers cut in half", draw: link("cut api-1..2 postgres 200..3200", "cut api-1..2 pspsim 200..3200", "cut api-1..2 redis 160..410")},
}

// nginxCutOff are the promises that need nginx's connections to the replicas.
var nginxCutOff = []books.Rule{verify.WaitedFor, verify.ReplicaAvailable}

// link takes one of these commands, and excuses what needs answers from its store in time.
// Sentinel's servers are not behind the proxy.
func link(commands ...string) draw {
	return func(s *Scheduler, r *Run) {
		has := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return s.has(Sentinel) && strings.Contains(c, stack.Redis) })
		command := oneOf(s, has...)
		switch {
		case strings.Contains(command, stack.Redis):
			r.Excuses = redisUnreachable
		case strings.Contains(command, stack.Postgres):
			r.Excuses = postgresUnreachable
		}
		s.command(r, command)
	}
}
