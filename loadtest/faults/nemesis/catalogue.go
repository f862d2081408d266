package nemesis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
)

// kind is a way to hurt; draw makes one fault of it.
type kind struct {
	name string
	draw func(*Scheduler) *Fault
}

// points are the instructions of a request at which a replica can die or pause.
var points = []string{"after-acquire", "before-provider", "after-provider", "before-commit", "after-commit", "before-complete"}

// catalogue has every kind once. Its order is part of what a seed means.
var catalogue = slices.Concat([]kind{
	{"replica kill", (*Scheduler).kill},
	{"both replicas kill", (*Scheduler).killBoth},
	{"nginx passes on while a replica dies", (*Scheduler).dieUnderLoad},
	{"replica pause", (*Scheduler).pauseReplica},
	{"request pause", (*Scheduler).pausePoint},
	{"redis kill", lossOfRedis(process("kill", stack.Redis, "start"))},
	{"redis pause", process("pause", stack.Redis, "resume")},
	{"redis pause past the lease", pausedPastLease(stack.Redis)},
	{"redis flush", lossOfRedis(redisCommand("FLUSHALL"))},
	{"redis script flush", redisCommand("SCRIPT", "FLUSH")},
	{"redis out of memory", (*Scheduler).outOfMemory},
	{"redis cut off from one replica", (*Scheduler).cutRedisOff},
	{"provider kill", process("kill", stack.PSP, "start")},
	{"provider pause", process("pause", stack.PSP, "resume")},
	{"provider slow", (*Scheduler).slowProvider},
	{"provider fails", (*Scheduler).failProvider},
	{"provider answers garbage", (*Scheduler).garbleProvider},
	{"webhooks repeated and reordered", (*Scheduler).repeatWebhooks},
	{"webhooks lost", (*Scheduler).loseWebhooks},
	{"webhooks delayed", (*Scheduler).delayWebhooks},
	{"postgres pause", process("pause", stack.Postgres, "resume")},
	{"postgres crash", process("crash", stack.Postgres, "start")},
	{"postgres silent", (*Scheduler).silencePostgres},
	{"postgres table locked", (*Scheduler).lockTable},
	{"nginx cut off from one replica", (*Scheduler).cutNginxOff},
	{"slow link", (*Scheduler).slow},
	{"answers cut in half", (*Scheduler).cutNginxAnswers},
	{"inner answers cut in half", (*Scheduler).cutInnerAnswers},
}, deaths())

// deaths are kinds of their own: one for each point of a request, and the relay's between publishing and marking.
func deaths() []kind {
	var kinds []kind
	for _, point := range slices.Concat(points, []string{"after-publish"}) {
		kinds = append(kinds, kind{"kill " + point, func(s *Scheduler) *Fault { return s.diePoint(point) }})
	}
	return kinds
}

// kindsOf are those that make sense on a target.
func kindsOf(target Target) []kind {
	if target.Sentinel {
		return withSentinel(catalogue)
	}
	return catalogue
}

// Kinds are the names of all nemeses of a target.
func Kinds(target Target) []string { return names(kindsOf(target)) }

func names(kinds []kind) []string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.name
	}
	return list
}

// choose finds kinds by name; no names at all are all of them.
func choose(kinds []kind, only []string) ([]kind, error) {
	if len(only) == 0 {
		return kinds, nil
	}
	var chosen []kind
	for _, name := range only {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no nemesis is called %q; these are: %q", name, names(kinds))
		}
		chosen = append(chosen, kinds[i])
	}
	return chosen, nil
}

// Victim names what a kind hurts, for people.
func Victim(kind string) string {
	for _, victim := range []struct{ name, prefix string }{
		{"Redis", "redis"}, {"Redis", "sentinel"}, {"PostgreSQL", "postgres"}, {"Provider", "provider"}, {"Provider", "webhooks"}, {"Replicas", "replica"},
		{"Replicas", "both replicas"}, {"Replicas", "request"}, {"Replicas", "kill"}, {"Replicas", "nginx passes on"},
	} {
		if strings.HasPrefix(kind, victim.prefix) {
			return victim.name
		}
	}
	return "Network"
}
