package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestBearerToken_IsReadOnce(t *testing.T) {
	t.Parallel()
	for header, token := range map[string]string{
		"Bearer sk_test": "sk_test", "bearer sk_test": "sk_test", "BEARER  sk_test ": "sk_test",
		"": "", "Bearer": "", "Bearer ": "", "Bearer\tsk_test": "", "Basic sk_test": "", "sk_test": "",
	} {
		got, ok := bearerToken(http.Header{"Authorization": {header}})
		require.Equal(t, token != "", ok, header)
		if ok {
			require.Equal(t, token, got)
		}
	}
	_, ok := bearerToken(http.Header{"Authorization": {"Bearer a", "Bearer b"}})
	require.False(t, ok, "sent twice")
}

// directory is a look-up that counts, and may be away.
type directory struct {
	asked atomic.Int64
	away  atomic.Bool
	id    uuid.UUID
}

var errAway = errors.New("away")

func (d *directory) lookup(ctx context.Context, _ [32]byte) (checkout.Account, error) {
	d.asked.Add(1)
	select {
	case <-ctx.Done():
		return checkout.Account{}, ctx.Err()
	case <-time.After(time.Millisecond): // virtual, see synctest
	}
	if d.away.Load() {
		return checkout.Account{}, errAway
	}
	return checkout.Account{ID: d.id}, nil
}

func TestAccounts_AreCachedForTheTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &directory{id: uuid.New()}
		a := newAccounts(d.lookup, time.Second)
		for range 3 {
			id, err := a.of(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, d.id, id)
		}
		require.EqualValues(t, 1, d.asked.Load())

		d.away.Store(true)
		_, err := a.of(t.Context(), "key")
		require.NoError(t, err, "an outage isn't noticed while the key is remembered")
		time.Sleep(time.Second)
		_, err = a.of(t.Context(), "key")
		require.ErrorIs(t, err, errAway)
	})
}

func TestAccounts_ConcurrentRequestsAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &directory{id: uuid.New()}
		a := newAccounts(d.lookup, time.Second)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := a.of(t.Context(), "key")
				require.NoError(t, err)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, d.asked.Load())
	})
}

func TestAccounts_LookUpOutlivesItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &directory{id: uuid.New()}
		a := newAccounts(d.lookup, time.Second)
		gone, leave := context.WithCancel(t.Context())
		var both sync.WaitGroup
		for _, ctx := range []context.Context{gone, t.Context()} {
			both.Go(func() {
				_, err := a.of(ctx, "key")
				require.NoError(t, err)
			})
			synctest.Wait()
		}
		leave()
		both.Wait()
		require.EqualValues(t, 1, d.asked.Load())
	})
}

func TestAccounts_CacheIsBounded(t *testing.T) {
	t.Parallel()
	a := newAccounts(nil, time.Minute)
	for i := range maxCachedKeys + 100 {
		a.remember(keyHash([]byte(strconv.Itoa(1e9+i)+"0123456789012345678901")), knownAccount{until: time.Now().Add(time.Minute)})
	}
	require.Len(t, a.known, maxCachedKeys)
}

func TestAccounts_UnknownKeysAreNotCached(t *testing.T) {
	t.Parallel()
	a := newAccounts(func(context.Context, [32]byte) (checkout.Account, error) {
		return checkout.Account{}, checkout.ErrUnauthorized
	}, time.Minute)
	_, err := a.of(t.Context(), "key")
	require.ErrorIs(t, err, checkout.ErrUnauthorized)
	require.Empty(t, a.known)
}
