package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// followed is what a pool has told of timelines.
type followed struct {
	mu       sync.Mutex
	followed []Timeline
	begun    []Beginning
}

func (f *followed) config(url string) Config {
	return Config{URL: url, MaxConns: 8,
		FollowTimeline: func(now Timeline) { f.mu.Lock(); defer f.mu.Unlock(); f.followed = append(f.followed, now) },
		BeginTimeline:  func(begun Beginning) { f.mu.Lock(); defer f.mu.Unlock(); f.begun = append(f.begun, begun) }}
}

// promoted makes a database look as if it had begun on another timeline.
func promoted(t *testing.T, url string) {
	t.Helper()
	pool := open(t, url)
	_, err := pool.Exec(t.Context(), "UPDATE timelines SET system = system + 1")
	require.NoError(t, err)
}

func TestTimeline_MovesThePositionsOnceBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	pool := open(t, url)
	_, err := pool.Exec(t.Context(), "UPDATE outbox_cursor SET position = 3; SELECT setval('outbox_id_seq', 5)")
	require.NoError(t, err)
	promoted(t, url)
	requireMovedOnce(t, url, 3, 5)
}

// TestTimeline_BeginsAnewBehindTheCursor: a restore without sequences begins no other timeline.
func TestTimeline_BeginsAnewBehindTheCursor(t *testing.T) {
	t.Parallel()
	for name, sequence := range map[string]string{
		"drawn before": "SELECT setval('outbox_id_seq', 5)",
		"never drawn":  "SELECT setval('outbox_id_seq', 1, false)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.Postgres(t)
			pool := open(t, url)
			_, err := pool.Exec(t.Context(), "UPDATE outbox_cursor SET position = 2000000000; "+sequence)
			require.NoError(t, err)
			requireMovedOnce(t, url, 2_000_000_000, 2_000_000_000)
		})
	}
}

// requireMovedOnce draws positions in several processes that connect at the same time. They begin
// with the gap after the last position, and one process is told where the cursor was.
func requireMovedOnce(t *testing.T, url string, published, last int64) {
	t.Helper()
	var seen followed
	var drawing sync.WaitGroup
	var mu sync.Mutex
	var positions []int64
	for range 4 { // as many processes
		pool, err := Open(t.Context(), seen.config(url))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		for range 4 {
			drawing.Go(func() {
				var position int64
				err := pool.QueryRow(t.Context(), "SELECT nextval('outbox_id_seq')").Scan(&position)
				mu.Lock()
				defer mu.Unlock()
				positions = append(positions, position)
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	drawing.Wait()
	slices.Sort(positions)
	require.Equal(t, last+positionGap+1, positions[0])
	require.Equal(t, last+positionGap+16, positions[15], "moved once")
	require.Len(t, seen.begun, 1)
	require.Equal(t, published, seen.begun[0].Published)
	require.GreaterOrEqual(t, len(seen.followed), 4)
	for _, timeline := range seen.followed {
		require.Equal(t, seen.begun[0].Timeline, timeline)
	}
}

func TestTimeline_OfTheMigrationIsNoNewOne(t *testing.T) {
	t.Parallel()
	var seen followed
	pool, err := Open(t.Context(), seen.config(testenv.Postgres(t)))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, pool.Ping(t.Context()))
	require.Empty(t, seen.begun)
	require.Len(t, seen.followed, 1)
	require.Regexp(t, `^[0-9a-f]{8}\.1$`, seen.followed[0].String())
}

func TestTimeline_IsFollowedWithoutASchema(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyPostgres(t)
	var seen followed
	pool, err := Open(t.Context(), seen.config(url))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, pool.Ping(t.Context()))
	require.Len(t, seen.followed, 1)
	_, err = Migrate(context.Background(), url, "up")
	require.NoError(t, err)
	pool.Reset()
	require.NoError(t, pool.Ping(t.Context()))
	require.Len(t, seen.followed, 2, "it was not noted before")
	pool.Reset()
	require.NoError(t, pool.Ping(t.Context()))
	require.Len(t, seen.followed, 2)
	require.Empty(t, seen.begun)
}
