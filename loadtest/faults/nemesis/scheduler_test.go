package nemesis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func scheduler(t *testing.T, seed uint64, only ...string) *Scheduler {
	t.Helper()
	s, err := NewScheduler(Target{}, seed, only...)
	require.NoError(t, err)
	return s
}

func draws(t *testing.T, seed uint64) (names []string) {
	t.Helper()
	s := scheduler(t, seed)
	for range 100 {
		for _, f := range s.Draw() {
			names = append(names, fmt.Sprint(f.Name, f.Hold))
		}
		names = append(names, "then")
	}
	return names
}

func TestScheduleFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	first, again, other := draws(t, 1), draws(t, 1), draws(t, 2)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

func TestEachKindComesBeforeAnyComesAgain(t *testing.T) {
	t.Parallel()
	s := scheduler(t, 3)
	for range 20 {
		var round []string
		for range catalogue {
			f := s.next()
			require.Positive(t, f.Hold)
			round = append(round, f.Kind)
		}
		require.ElementsMatch(t, Kinds(Target{}), round)
	}
}

func TestFaultsSideBySideHurtDifferentServices(t *testing.T) {
	t.Parallel()
	s, together := scheduler(t, 4), map[int]int{}
	for range 3000 {
		faults := s.Draw()
		together[len(faults)]++
		hurt := map[string]string{}
		for i, f := range faults {
			require.False(t, i > 0 && f.needs && !faults[i-1].needs, "what needs requests goes first")
			for _, victim := range f.victims {
				require.Empty(t, hurt[victim], "%s is hurt by %s, too", victim, f.Name)
				hurt[victim] = f.Name
			}
		}
	}
	require.Positive(t, together[1])
	require.Positive(t, together[2])
	require.Positive(t, together[3])
	require.Greater(t, together[1], together[2])
	require.Greater(t, together[2], together[3])
}

func TestOnlySomeKinds(t *testing.T) {
	t.Parallel()
	s, seen := scheduler(t, 5, "redis flush", "replica kill"), map[string]bool{}
	for range 10 {
		for _, f := range s.Draw() {
			seen[f.Kind] = true
		}
	}
	require.Equal(t, map[string]bool{"redis flush": true, "replica kill": true}, seen)
	_, err := NewScheduler(Target{}, 5, "earthquake")
	require.ErrorContains(t, err, "earthquake")
	require.ErrorContains(t, err, "redis flush", "tells what there is")
}

func TestKindsAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range Kinds(Target{Sentinel: true}) {
		require.False(t, seen[name], name)
		seen[name] = true
	}
}

func TestWithSentinelFailoversTakeTheirPlace(t *testing.T) {
	t.Parallel()
	target := Target{Sentinel: true}
	s, err := NewScheduler(target, 6)
	require.NoError(t, err)
	kinds := Kinds(target)
	require.Contains(t, kinds, "redis failover while the replica lags")
	require.Contains(t, kinds, "redis flush")
	require.NotContains(t, kinds, "redis cut off from one replica", "that connection can't be cut")
	require.NotContains(t, kinds, "redis kill", "a failover in disguise")
	require.NotContains(t, Kinds(Target{}), "redis failover")
	round := map[string]int{}
	for range len(kinds) + 2*(oftener-1) {
		f := s.next()
		require.NotRegexp(t, "and redis|of redis to", f.Name, "nor that")
		round[f.Kind]++
	}
	for _, name := range kinds {
		times := 1
		if strings.HasPrefix(name, "redis failover") {
			times = oftener
		}
		require.Equal(t, times, round[name], name)
	}
	_, err = NewScheduler(Target{}, 6, "redis failover")
	require.ErrorContains(t, err, "redis failover")
}

// What makes Redis lose its data is followed by a replay of events, and breaks the record of the stream.
func TestLossesOfRedisAreMarked(t *testing.T) {
	t.Parallel()
	s := scheduler(t, 6)
	loses := map[string]bool{}
	for range catalogue {
		if f := s.next(); f.Loses {
			loses[f.Kind] = true
		}
	}
	require.Equal(t, map[string]bool{"redis kill": true, "redis flush": true}, loses)
}

// Each death is measured, and each nemesis that can count does.
func TestDeathsAndCounts(t *testing.T) {
	t.Parallel()
	s := scheduler(t, 7)
	var dies, counts int
	for range catalogue {
		f := s.next()
		if f.Dies != "" {
			require.Equal(t, []string{f.Dies}, f.victims, f.Kind)
			dies++
		}
		if f.Counts {
			counts++
		}
	}
	require.Equal(t, 2+len(points)+1, dies, "kill, kill under way, and at each point")
	require.Equal(t, 6, counts, "the provider's five, and what nginx passes on")
}
