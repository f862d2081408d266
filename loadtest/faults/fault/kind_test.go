package fault

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

var (
	single   = Target{}
	sentinel = Target{Redis: stack.Sentinel}
	standby  = Target{Postgres: stack.SyncStandby}
	earlier  = Target{Base: "/earlier"}
)

func schedule(t *testing.T, target Target, seed uint64, only ...string) *Scheduler {
	t.Helper()
	s, err := NewScheduler(target, seed, only...)
	require.NoError(t, err)
	return s
}

func draws(t *testing.T, seed uint64) (names []string) {
	t.Helper()
	s := schedule(t, single, seed)
	for range 100 {
		for _, r := range s.Draw() {
			names = append(names, fmt.Sprint(r.Label, r.Hold))
		}
		names = append(names, "then")
	}
	return names
}

func TestScheduler_FollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	first, again, other := draws(t, 1), draws(t, 1), draws(t, 2)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

func TestScheduler_DrawsEachKindByItsWeightInEveryRound(t *testing.T) {
	t.Parallel()
	for _, target := range []Target{single, sentinel, standby, earlier} {
		s, want, size := schedule(t, target, 3), map[string]int{}, 0
		for _, k := range kindsOf(target) {
			want[k.Name] = max(1, k.Weight)
			size += want[k.Name]
		}
		for range 5 {
			round := map[string]int{}
			for range size {
				r := s.beside()
				require.Positive(t, r.Hold)
				require.NotEmpty(t, r.Label)
				round[r.Name]++
			}
			require.Equal(t, want, round)
		}
	}
}

func TestScheduler_DrawsRunsOfDifferentVictimsTogether(t *testing.T) {
	t.Parallel()
	s, together := schedule(t, single, 4), map[int]int{}
	for range 3000 {
		runs := s.Draw()
		together[len(runs)]++
		broken := map[string]string{}
		for i, r := range runs {
			require.False(t, i > 0 && r.traffic && !runs[i-1].traffic, "what needs traffic is first")
			for _, victim := range r.victims {
				require.Empty(t, broken[victim], "%s is broken by %s, too", victim, r.Label)
				broken[victim] = r.Label
			}
		}
	}
	require.Positive(t, together[3])
	require.Greater(t, together[1], together[2])
	require.Greater(t, together[2], together[3])
}

func TestScheduler_DrawsOnlyNamedKinds(t *testing.T) {
	t.Parallel()
	s, seen := schedule(t, single, 5, "redis flush", "replica kill"), map[string]bool{}
	for range 10 {
		for _, r := range s.Draw() {
			seen[r.Name] = true
		}
	}
	require.Equal(t, map[string]bool{"redis flush": true, "replica kill": true}, seen)
	_, err := NewScheduler(single, 5, "earthquake")
	require.ErrorContains(t, err, "earthquake")
	require.ErrorContains(t, err, "redis flush", "names what there is")
	_, err = NewScheduler(single, 6, "redis failover")
	require.Error(t, err, "needs Sentinel")
}

func TestScheduler_RollsOutAndBack(t *testing.T) {
	t.Parallel()
	require.True(t, schedule(t, single, 6).RolledBack())
	require.True(t, schedule(t, earlier, 6, "redis flush").RolledBack())
	s := schedule(t, earlier, 6)
	for n, want := range []string{"api-1 becomes this release", "api-2 becomes this release", "api-1 becomes the earlier release",
		"api-2 becomes the earlier release", "api-1 becomes this release"} {
		s.swaps = n
		r := &Run{}
		s.swapReplica(r)
		require.Equal(t, want, r.Label)
		require.Equal(t, n%2 == 1, r.Dies != "", "the second one is killed")
		require.Equal(t, n == 4, s.RolledBack())
	}
}

func TestScheduler_AvoidsWhatSentinelHasNot(t *testing.T) {
	t.Parallel()
	s := schedule(t, sentinel, 6)
	for range 500 {
		r := s.beside()
		require.NotEqual(t, SingleRedis, r.Needs)
		require.NotRegexp(t, "(slow|cut|partition) .* redis", r.Label, "those connections are not behind the proxy")
	}
}

func TestCatalogue_IsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range catalogue {
		require.NotEmpty(t, k.Name)
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		require.True(t, k.draw != nil || k.command != "", k.Name)
		for command := range strings.SplitSeq(k.command, "; ") {
			require.True(t, command == "" || undo[strings.Fields(command)[0]] != "", "nothing takes %q back", command)
		}
		for _, rule := range k.Excuses {
			require.Contains(t, verify.Rules, rule, k.Name)
		}
	}
}

// A kind excuses only promises that its effect really suspends: money, answers and events never.
func TestCatalogue_ExcusesNoOutcome(t *testing.T) {
	t.Parallel()
	excusable := []books.Rule{verify.LeaseKept, verify.WaitedFor, verify.HangUpServed, verify.ReplicaAvailable}
	for _, k := range catalogue {
		require.Subset(t, excusable, k.Excuses, k.Name)
	}
}

func TestRun_ExcusesMoreThanItsKindWhereItSaysSo(t *testing.T) {
	t.Parallel()
	s, excuses := schedule(t, single, 7, "request pause"), map[bool]bool{}
	for range 100 {
		r := s.beside()
		atAcquire := len(r.Excuses) == 2
		excuses[atAcquire] = true
		require.Equal(t, atAcquire, r.Label[len(r.Label)-len(afterAcquire):] == afterAcquire, r.Label)
	}
	require.Len(t, excuses, 2)
	for _, k := range catalogue {
		if k.Name == "request pause" {
			require.Equal(t, []books.Rule{verify.HangUpServed}, k.Excuses, "runs leave their kind alone")
		}
	}
}

func TestCommand_DrawsItsNumbersAndSaysWhatItBreaks(t *testing.T) {
	t.Parallel()
	seen, s := map[string]bool{}, schedule(t, single, 8)
	for range 50 {
		r := s.make(Kind{Name: "n", command: "kill api-1..2"})
		require.Equal(t, []string{"n: kill " + r.Dies}, []string{r.Label})
		require.Equal(t, []string{r.Dies}, r.victims)
		seen[r.Dies] = true
	}
	require.Equal(t, map[string]bool{"api-1": true, "api-2": true}, seen)
	require.Equal(t, "api-1", s.make(Kind{command: "pause api-1"}).Pauses)
	both := s.make(Kind{command: "kill api-1; kill api-2"})
	require.Empty(t, both.Dies)
	require.Equal(t, []string{"api-1", "api-2"}, both.victims)
	require.Empty(t, s.make(Kind{command: "slow api-1 pspsim 1..2s"}).victims, "a connection is nobody's")
}

func TestRun_SaysWhoDies(t *testing.T) {
	t.Parallel()
	s := schedule(t, single, 7)
	dies, counts := 0, 0
	for range catalogue {
		r := s.beside()
		if r.Dies != "" {
			require.Contains(t, r.victims, r.Dies, r.Name)
			dies++
		}
		if r.Counts {
			counts++
		}
	}
	require.GreaterOrEqual(t, dies, 2+len(points), "kill, kill under load, and at each point")
	require.GreaterOrEqual(t, counts, 6, "the provider's five, and what nginx passes on")
}
