package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
)

func TestStore_PassesTheSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Bench {
		store := memstore.New()
		return storetest.Bench{Store: store, Plant: plant(store)}
	})
}

func plant(store *memstore.Store) func(testing.TB, string, string, []byte) {
	return func(_ testing.TB, scope, key string, data []byte) { store.Plant(scope, key, data) }
}

func TestStore_RemovesExpiredRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		acquire := func(key string) idempotency.Record {
			pending := idempotency.Record{Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner()}
			existing, err := store.Acquire(t.Context(), pending, time.Second)
			require.NoError(t, err)
			require.Nil(t, existing)
			return pending
		}
		for i := range 1000 {
			acquire(fmt.Sprint("old-", i))
		}
		held := acquire("held")
		time.Sleep(time.Second)
		require.ErrorIs(t, store.Extend(t.Context(), held, time.Hour), idempotency.ErrLost, "expired before it is removed")
		for i := range 1000 {
			acquire(fmt.Sprint("new-", i))
		}
		require.Less(t, store.Len(), 1100, "nearly all of the old thousand are removed")
	})
}
