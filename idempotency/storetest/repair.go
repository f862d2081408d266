package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// repair is an [acquiring].
func (b *bench) repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	return idempotency.Repair(ctx, b.Store, pending, lease)
}

// repairCases check a [idempotency.Repairer].
func repairCases(run cases) {
	repair := func(t *testing.T, b *bench, pending idempotency.Record) *idempotency.Record {
		t.Helper()
		existing, err := b.repair(t.Context(), pending, long)
		require.NoError(t, err)
		return existing
	}
	for name, data := range corrupt {
		run("repair replaces: "+name, func(t *testing.T, b *bench) {
			b.Plant(t, b.scope, "key", []byte(data))
			pending := b.pending("key")
			for range 2 { // also after a lost reply
				require.Nil(t, repair(t, b, pending), "it is ours")
			}
			b.requireHolds(t, pending)
			finished := done(pending, "answer")
			require.NoError(t, b.Store.Complete(t.Context(), finished, long))
			b.requireHolds(t, finished)
		})
	}
	run("repair of a record that is not damaged returns it", func(t *testing.T, b *bench) {
		finished := b.completed(t, "key", "answer")
		requireSame(t, finished, repair(t, b, b.pending("key")))
		b.requireHolds(t, finished)
		holder := b.held(t, "held", long)
		requireSame(t, holder, repair(t, b, b.pending("held")))
		b.requireHolds(t, holder)
	})
	run("repair of no record acquires the key", func(t *testing.T, b *bench) {
		pending := b.pending("key")
		require.Nil(t, repair(t, b, pending))
		b.requireHolds(t, pending)
	})
	run("one of many repairs replaces a damaged record", func(t *testing.T, b *bench) {
		for name, data := range corrupt {
			b.Plant(t, b.scope, name, []byte(data))
			b.requireOneWinner(t, name, b.repair)
		}
	})
}
