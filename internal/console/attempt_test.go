package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttempt_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	s := &Server{}
	for range 3 * keptAttempts {
		s.attempt(attempt{By: you})
	}
	require.Len(t, s.state.Attempts, keptAttempts)
	require.Equal(t, 3*keptAttempts, s.state.Attempts[0].ID, "the newest is first")
	require.Equal(t, 2*keptAttempts+1, s.state.Attempts[keptAttempts-1].ID)
}

func TestAttempt_TakesEachSpanOnceAndInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	s := &Server{}
	a := s.attempt(attempt{By: you, Key: "k"})
	later, earlier := at(2, "api-1", "postgres", "ClaimKey"), at(1, "api-1", "redis", "set")
	for _, c := range []call{later, earlier, later} {
		a.add(c)
	}
	require.Equal(t, []call{earlier, later}, a.Calls)
	require.Equal(t, "api-1", s.state.firstWorker("k"))
	require.Empty(t, s.state.firstWorker("another"))
}
