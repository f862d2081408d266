package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func entry(t *testing.T, text string) EntryID {
	t.Helper()
	id, err := parseEntryID(text)
	require.NoError(t, err)
	return id
}

func TestEntryID_IsOrderedByTimeAndSequence(t *testing.T) {
	t.Parallel()
	ordered := []string{"0-0", "0-1", "9-18446744073709551615", "10-0", "10-2", "10-10"}
	for i, a := range ordered {
		require.Equal(t, a, entry(t, a).String())
		for j, b := range ordered {
			require.Equal(t, i < j, entry(t, a).Before(entry(t, b)), "%s %s", a, b)
		}
	}
	require.Equal(t, entry(t, "10-3"), entry(t, "10-2").Next())
	for _, text := range []string{"", "10", "10-", "x-1", "-1-1"} {
		_, err := parseEntryID(text)
		require.Error(t, err, text)
	}
}

func TestStreamState_SaysWhatAGroupHasHandled(t *testing.T) {
	t.Parallel()
	last := entry(t, "10-5")
	state := func(last, open string) StreamState {
		return StreamState{Exists: true, Last: entry(t, last), Open: map[string]EntryID{"g": entry(t, open)}}
	}
	require.True(t, state("10-5", "10-6").Handled("g", last))
	require.True(t, state("99-0", "10-6").Handled("g", last))
	require.False(t, state("10-5", "10-5").Handled("g", last), "it is not given, or pending")
	require.False(t, state("10-5", "10-6").Handled("another", last), "it will read the stream from its beginning")
	require.True(t, StreamState{}.Handled("g", last), "the stream is gone")
	require.True(t, state("10-4", "0-1").Handled("g", last), "the stream was lost and has begun anew")
}

func TestStreamState_IsTrimmableWhereEveryGroupHasHandledAll(t *testing.T) {
	t.Parallel()
	state := StreamState{Exists: true, Last: entry(t, "9-9"), Open: map[string]EntryID{"a": entry(t, "5-0"), "b": entry(t, "3-1")}}
	require.Equal(t, entry(t, "3-1"), state.Trimmable([]Group{{Name: "a"}}), "also groups that we don't know")
	require.Equal(t, EntryID{}, state.Trimmable([]Group{{Name: "a"}, {Name: "c"}}), "a group is not there")
	require.Equal(t, entry(t, "9-10"), StreamState{Last: entry(t, "9-9")}.Trimmable(nil))
}
