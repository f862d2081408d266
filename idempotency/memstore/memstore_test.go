package memstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Bench {
		store := memstore.New()
		return storetest.Bench{Store: store, Plant: plant(store)}
	})
}

func TestStoreWithClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Bench {
		clock := &clock{now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
		store := memstore.New(memstore.WithClock(clock.Now))
		return storetest.Bench{Store: store, Advance: clock.Advance, Plant: plant(store)}
	})
}

func plant(store *memstore.Store) func(testing.TB, string, string, []byte) {
	return func(_ testing.TB, scope, key string, data []byte) { store.Plant(scope, key, data) }
}

func TestExpiredRecordsAreRemoved(t *testing.T) {
	t.Parallel()
	clock := &clock{now: time.Now()}
	store := memstore.New(memstore.WithClock(clock.Now))
	acquire := func(key string) {
		pending := idempotency.Record{Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner()}
		existing, err := store.Acquire(t.Context(), pending, time.Second)
		require.NoError(t, err)
		require.Nil(t, existing)
	}
	for i := range 1000 {
		acquire(fmt.Sprint("old-", i))
	}
	held := idempotency.Record{Key: "held", Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner()}
	_, err := store.Acquire(t.Context(), held, time.Second)
	require.NoError(t, err)
	clock.Advance(time.Second)
	require.ErrorIs(t, store.Extend(t.Context(), held, time.Hour), idempotency.ErrLost, "expired before it is removed")
	for i := range 1000 {
		acquire(fmt.Sprint("new-", i))
	}
	require.Less(t, store.Len(), 1100, "the old thousand is gone, but for a few")
}

// clock moves only when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
