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
		requireSeen := func(key string, want *idempotency.Record) {
			t.Helper()
			found, err := idempotency.Lookup(t.Context(), b.Store, b.scope, key)
			require.NoError(t, err)
			if want == nil {
				require.Nil(t, found)
				return
			}
			require.NotNil(t, found)
			require.Equal(t, [2]string{b.scope, key}, [2]string{found.Scope, found.Key})
			require.Equal(t, want.Status, found.Status)
			require.Equal(t, want.Owner, found.Owner)
			require.True(t, want.CreatedAt.Equal(found.CreatedAt))
			require.False(t, found.ExpiresAt.IsZero())
			require.Equal(t, string(want.Response.Body), string(found.Response.Body))
		}
		requireSeen("key", nil)
		pending := b.held(t, "key", long)
		requireSeen("key", &pending)
		finished := done(pending, "answer")
		require.NoError(t, b.Store.Complete(t.Context(), finished, long))
		requireSeen("key", &finished)
		b.requireHolds(t, finished)
		requireSeen("other key", nil)
		b.held(t, "other key", long)

		b.held(t, "short", short)
		b.pass(t)
		requireSeen("short", nil)
	})
}
