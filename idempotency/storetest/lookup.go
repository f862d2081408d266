package storetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// lookupCases are for stores that are an [idempotency.Reader].
func lookupCases(run cases) {
	run("a look-up sees each state and changes none", func(t *testing.T, b *bench) {
		if _, err := idempotency.Lookup(t.Context(), b.Store, b.scope, "key"); errors.Is(err, errors.ErrUnsupported) {
			return
		}
		seen := func(key string) *idempotency.Record {
			t.Helper()
			found, err := idempotency.Lookup(t.Context(), b.Store, b.scope, key)
			require.NoError(t, err)
			return found
		}
		require.Nil(t, seen("key"))
		pending := b.held(t, "key", long)
		requireSame(t, pending, seen("key"))
		finished := done(pending, "answer")
		require.NoError(t, b.Store.Complete(t.Context(), finished, long))
		requireSame(t, finished, seen("key"))
		b.requireHolds(t, finished)
		require.Nil(t, seen("other key"))
		b.held(t, "other key", long)

		b.held(t, "short", short)
		b.pass(t)
		require.Nil(t, seen("short"))
	})
}
