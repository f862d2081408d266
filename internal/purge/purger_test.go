package purge

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endless has always more to delete, and takes its time.
type endless struct{ busy atomic.Int64 }

func (e *endless) delete(limit int) (int, error) {
	const takes = 5 * time.Millisecond
	time.Sleep(takes)
	e.busy.Add(int64(takes))
	return limit, nil
}

func (e *endless) PurgeKeys(_ context.Context, limit int) (int, error) { return e.delete(limit) }

func (e *endless) PurgeProviderEvents(_ context.Context, _ time.Duration, limit int) (int, error) {
	return e.delete(limit)
}

func (e *endless) PurgeEvents(_ context.Context, _ time.Duration, limit int) (int, error) {
	return e.delete(limit)
}

func (e *endless) PurgeInbox(_ context.Context, _ time.Duration, limit int) (int, error) {
	return e.delete(limit)
}

func TestPurger_LeavesTheDatabaseToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &endless{}
		p := New(store, Options{})
		p.Start(t.Context())
		time.Sleep(purgeInterval) // by then it has begun
		store.busy.Store(0)
		time.Sleep(10 * time.Minute)
		p.Stop()
		require.InDelta(t, int64(time.Minute), store.busy.Load(), float64(time.Second))
	})
}
