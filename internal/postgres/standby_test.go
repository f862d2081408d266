package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/testenv"
)

// A client that gives up must not end the commit's wait: what the standby does not have would
// become visible, could be answered as done, and be lost with the primary.
func TestSyncStandby_LacksNothingThatAnybodyHasSeen(t *testing.T) {
	t.Parallel()
	pair := testenv.PostgresPair(t)
	pool := open(t, pair.URL)
	_, err := pool.Exec(t.Context(), "CREATE TABLE kept (n int)")
	require.NoError(t, err)
	pair.CatchUp()
	pair.Synchronize()
	pair.Detach()

	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	session := conn.Hijack()
	pid := session.PgConn().PID()
	_, err = session.Exec(brief, "INSERT INTO kept VALUES (1)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-session.PgConn().CleanupDone() // by then the server has a cancel request, if there is one

	look, err := pgx.Connect(t.Context(), localserver.PostgresURL(pair.Primary.Addr))
	require.NoError(t, err)
	defer func() { _ = look.Close(context.Background()) }()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for range 50 { // not require.Never: it may return while its last look is under way
		var waiting bool
		require.NoError(t, look.QueryRow(t.Context(), "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'", pid).Scan(&waiting))
		require.True(t, waiting, "the commit goes on waiting")
		<-again.C
	}
	var seen int
	require.NoError(t, look.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&seen))
	require.Zero(t, seen)

	pair.FailOver()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, pool.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&seen))
	}, 30*time.Second, 50*time.Millisecond)
	require.Zero(t, seen)
}
