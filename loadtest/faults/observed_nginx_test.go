package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestDeadWithoutCause_NeedsAnExcuseAtTheTime(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	log := `nginx | 2026/11/21 17:59:59 [error] 7#7: *1 connect() failed (111: Connection refused) while connecting to upstream
2026/11/21 18:00:10 [error] 7#7: *5 upstream timed out (110: Connection timed out) while reading response header
2026/11/21 18:00:10 [warn] 7#7: *5 a client request body is buffered
2026/11/21 18:00:20 [error] 7#7: *6 recv() failed (104: Connection reset by peer) while reading response header from upstream
2026/11/21 18:00:20 [error] 7#7: *7 no live upstreams while connecting to upstream, client: 127.0.0.1
`
	found := deadWithoutCause(log, nil, began, time.UTC)
	require.Len(t, found, 2, "what was before the campaign and what is no failure does not count")
	require.Equal(t, verify.ReplicaAvailable, found[0].Rule)
	require.Contains(t, found[1].Detail, "at 20s: recv() failed")

	require.Len(t, deadWithoutCause(log, between(8, 11, verify.ReplicaAvailable), began, time.UTC), 1)
	require.Len(t, deadWithoutCause(log, between(8, 11, verify.LeaseKept), began, time.UTC), 2)
}

// TestAsRead_TakesTheTimesOfTheServers has the history of a campaign on a busy machine: the first
// copy was sent at 10 s, the one that was refused at 10.3 s, and the first one acted.
func TestAsRead_TakesTheTimesOfTheServers(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	older := journal.Attempt{Account: "a", Key: "k", Via: "nginx", RequestID: "r1", Invoke: 10 * time.Second, Return: 16 * time.Second, Error: "timeout"}
	refused := journal.Attempt{Account: "a", Key: "k", Via: "api-1", RequestID: "r2", Invoke: 10300 * time.Millisecond, Return: 11 * time.Second,
		Status: 422, Code: "unknown_product"}
	late, early := began.Add(10310*time.Millisecond), began.Add(10010*time.Millisecond)
	direct := older
	direct.Via = "api-2"
	answered := direct
	answered.Error, answered.Status = "", 201
	proxied := answered
	proxied.Proxied = true
	for name, c := range map[string]struct {
		older journal.Attempt
		read  map[string]time.Time
		found bool
	}{
		"read late":           {older, map[string]time.Time{"r1": late}, false},
		"read before":         {older, map[string]time.Time{"r1": early}, true},
		"not logged":          {older, nil, true},
		"its client has left": {direct, map[string]time.Time{"r1": late}, true},
		"its client waits":    {answered, map[string]time.Time{"r1": late}, false},
		"a proxy's":           {proxied, map[string]time.Time{"r1": late}, true},
		"it was the older":    {answered, map[string]time.Time{"r1": early}, true},
	} {
		held := books.Books{Keys: []books.KeyRow{{KeyID: books.KeyID{Account: "a", Key: "k"}, Status: "completed"}}}
		found := verify.All(asRead([]journal.Attempt{c.older, refused}, c.read, began), held, time.Second)
		isRule := func(v books.Violation) bool { return v.Rule == verify.RefusalsHold }
		require.Equal(t, c.found, slices.ContainsFunc(found, isRule), name)
	}
}
