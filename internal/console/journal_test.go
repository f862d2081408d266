package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJournal_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	j := &journal{}
	for range 3 * keptAttempts {
		j.begin(attempt{By: you})
	}
	require.Len(t, j.now(), keptAttempts)
	require.Equal(t, 2*keptAttempts+1, j.now()[0].ID)
}

func TestJournal_TakesEachSpanOnceAndInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	j := &journal{}
	a := j.begin(attempt{By: you, Key: "k"})
	later, earlier := at(2, "api-1", "postgres", "ClaimKey"), at(1, "api-1", "redis", "set")
	for _, c := range []call{later, earlier, later} {
		_, found := j.addCall(a.Trace, c)
		require.True(t, found)
	}
	require.Equal(t, []call{earlier, later}, j.now()[0].Calls)
	require.Equal(t, "api-1", j.workerOf("k"))
	j.end(a)
	require.Len(t, j.now()[0].Calls, 2, "the end keeps them")
	require.Empty(t, j.workerOf("k"), "no replica works on what is answered")
	_, found := j.addCall("another", later)
	require.False(t, found)
}
