package verify_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func turnedAway(key string, at int) journal.Attempt {
	a := attempt(key, at, 503, "x")
	a.Code = "overloaded"
	return a
}

func TestTurnedAway_LeftNothing(t *testing.T) {
	t.Parallel()
	once, twice := func(journal.Attempt) bool { return false }, func(journal.Attempt) bool { return true }
	attempts := []journal.Attempt{turnedAway("a", 1), turnedAway("a", 2), turnedAway("b", 3), attempt("b", 4, 201, "x")}
	row := books.Books{Keys: []books.KeyRow{{KeyID: books.KeyID{Account: account, Key: "a"}, Status: "in_progress"}}}
	for name, found := range map[string][]books.Violation{
		"a row": verify.TurnedAwayLeftNothing(attempts, row, nil, once), "a record": verify.TurnedAwayLeftNothing(attempts, books.Books{}, map[string]time.Duration{"a": 1}, once),
	} {
		require.Len(t, found, 1, name)
		require.Equal(t, verify.TurnedAwayClean, found[0].Rule)
		require.Equal(t, "a", found[0].Key)
	}
	require.Empty(t, verify.TurnedAwayLeftNothing(attempts, books.Books{}, map[string]time.Duration{"b": 1}, once), "its second attempt was let in")
	require.Empty(t, verify.TurnedAwayLeftNothing(attempts, row, map[string]time.Duration{"a": 1}, twice), "another copy of it may have acted")
}

func TestAll_LeavesAloneWhoeverWasTurnedAwayAndLeft(t *testing.T) {
	t.Parallel()
	r := healthy()
	gone := turnedAway("key-crowd", 30)
	gone.Purpose = journal.Crowd
	r.attempts = append(r.attempts, gone)
	require.Empty(t, r.verdict())
	r.attempts[len(r.attempts)-1].Purpose = journal.Alone
	require.Equal(t, verify.Decided, r.verdict()[0].Rule, "who wants something comes back")
}
