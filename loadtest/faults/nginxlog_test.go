package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
