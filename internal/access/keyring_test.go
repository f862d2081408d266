package access

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
)

// store is one that counts its queries, and may be away. A query takes a moment.
type store struct {
	mu      sync.Mutex
	away    bool
	version uuid.UUID
	keys    []HashedKey
	slow    time.Duration // what a page takes
	hung    time.Duration // what the version takes, beside a moment
	asked   int           // for the version
	pages   int
}

var errAway = errors.New("away")

// pass waits for a while, which is virtual in synctest.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (s *store) APIKeysVersion(ctx context.Context) (uuid.UUID, error) {
	s.mu.Lock()
	hung := s.hung
	s.mu.Unlock()
	if err := pass(ctx, time.Millisecond+hung); err != nil {
		return uuid.Nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.away {
		return uuid.Nil, errAway
	}
	return s.version, nil
}

// APIKeys returns the keys of the moment in which it was called.
func (s *store) APIKeys(ctx context.Context, after Hash, limit int) ([]HashedKey, error) {
	s.mu.Lock()
	s.pages++
	i, found := slices.BinarySearchFunc(s.keys, after, func(k HashedKey, h Hash) int { return bytes.Compare(k.Hash[:], h[:]) })
	if found {
		i++
	}
	page, slow := s.keys[i:min(i+limit, len(s.keys))], s.slow
	s.mu.Unlock()
	return page, pass(ctx, slow)
}

// queries returns how often the store was asked for the version, and for a page.
func (s *store) queries() (versions, pages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.pages
}

// set replaces all keys.
func (s *store) set(keys ...HashedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(keys, func(a, b HashedKey) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	s.keys, s.version = keys, uuid.New()
}

// setSlow sets what the version and a page take.
func (s *store) setSlow(version, page time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung, s.slow = version, page
}

func (s *store) leave(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func named(name string, edit ...func(*Key)) HashedKey {
	k := HashedKey{Hash: HashOf(name), Key: Key{Account: uuid.NewSHA1(uuid.Nil, []byte(name))}}
	for _, e := range edit {
		e(&k.Key)
	}
	return k
}

func newRing(t testing.TB, s *store) *Ring {
	t.Helper()
	r := NewRing(s, background.Schedule{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, r.Refresh(t.Context()))
	return r
}

func TestRing_AStrangerCostsNoQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.set(named("ada"))
		r := newRing(t, s)
		r.Start(t.Context())
		defer r.Stop()
		time.Sleep(time.Hour)
		before, _ := s.queries()
		for range 1000 {
			_, err := r.Find(t.Context(), HashOf("stranger"), time.Second)
			require.ErrorIs(t, err, ErrUnknown)
		}
		after, pages := s.queries()
		require.Equal(t, []int{before, 1}, []int{after, pages})
	})
}

// TestRing_DoesNotSayThatANewKeyIsWrong: it was issued just before the store went away, or hung.
func TestRing_DoesNotSayThatANewKeyIsWrong(t *testing.T) {
	t.Parallel()
	for name, breakDown := range map[string]func(*store){
		"away":                   func(s *store) { s.leave(true) },
		"hangs at the version":   func(s *store) { s.setSlow(time.Hour, 0) },
		"hangs while it is read": func(s *store) { s.setSlow(0, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				s.set(named("ada"))
				r := newRing(t, s)
				r.Start(t.Context())
				defer r.Stop()
				time.Sleep(time.Hour)
				breakDown(s)
				s.set(named("ada"), named("bob"))
				time.Sleep(staleAfter + time.Millisecond)
				before, _ := s.queries()
				_, err := r.Find(t.Context(), HashOf("bob"), 2*time.Second)
				require.ErrorIs(t, err, ErrStale)
				after, _ := s.queries()
				require.Equal(t, before, after, "a stranger costs no query then either")

				s.setSlow(0, 0)
				s.leave(false)
				time.Sleep(2 * refreshTimeout)
				_, err = r.Find(t.Context(), HashOf("bob"), 2*time.Second)
				require.NoError(t, err)
				_, err = r.Find(t.Context(), HashOf("stranger"), 2*time.Second)
				require.ErrorIs(t, err, ErrUnknown)
			})
		})
	}
}

func TestRing_FindsAKeyThatWasNotUsedForAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.set(named("ada"), named("bob"))
		r := newRing(t, s)
		r.Start(t.Context())
		defer r.Stop()
		time.Sleep(time.Hour)
		before, _ := s.queries()
		key, err := r.Find(t.Context(), HashOf("bob"), 2*time.Second)
		require.NoError(t, err)
		require.Equal(t, named("bob").Account, key.Account)
		after, _ := s.queries()
		require.Equal(t, before, after, "it is known without asking")
	})
}

// TestRing_NoticesEachChange within the interval and its jitter, and reads all keys only then.
func TestRing_NoticesEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.set(named("ada"))
		r := newRing(t, s)
		r.Start(t.Context())
		defer r.Stop()
		find := func(name string) (Key, error) {
			time.Sleep(2 * time.Second)
			return r.Find(t.Context(), HashOf(name), time.Hour)
		}
		_, err := find("ada")
		require.NoError(t, err)
		_, pages := s.queries()
		require.Equal(t, 1, pages)

		s.set(named("ada", func(k *Key) { k.Suspended = true }), named("bob"))
		ada, err := find("ada")
		require.NoError(t, err)
		require.True(t, ada.Suspended)
		_, err = find("bob")
		require.NoError(t, err, "issued")
		_, pages = s.queries()
		require.Equal(t, 2, pages)

		s.set(named("bob"))
		_, err = find("ada")
		require.ErrorIs(t, err, ErrUnknown, "revoked")
	})
}

func TestRing_AKeyExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, ends := &store{}, time.Now().Add(time.Minute+time.Second/2)
		s.set(HashedKey{Hash: HashOf("ada"), Key: NewKey(uuid.New(), true, false, &ends)})
		r := newRing(t, s)
		key, err := r.Find(t.Context(), HashOf("ada"), time.Hour)
		require.NoError(t, err)
		require.True(t, key.ReadOnly)
		time.Sleep(time.Minute)
		_, err = r.Find(t.Context(), HashOf("ada"), time.Hour)
		require.NoError(t, err, "half a second is left")
		time.Sleep(time.Second / 2)
		_, err = r.Find(t.Context(), HashOf("ada"), time.Hour)
		require.ErrorIs(t, err, ErrUnknown)
	})
}

// TestRing_TrustsNoOldKey while the store is away: it may have been revoked.
func TestRing_TrustsNoOldKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.set(named("ada"))
		r := newRing(t, s)
		s.leave(true)
		_, err := r.Find(t.Context(), HashOf("ada"), time.Second)
		require.NoError(t, err, "an outage is not noticed at once")
		time.Sleep(time.Second)
		_, err = r.Find(t.Context(), HashOf("ada"), time.Second)
		require.ErrorIs(t, err, errAway)
		s.leave(false)
		s.set()
		_, err = r.Find(t.Context(), HashOf("ada"), time.Second)
		require.ErrorIs(t, err, ErrUnknown)
	})
}

// TestRing_ManyRequestsAskOnce, and the one that began does not end it for the others by leaving.
func TestRing_ManyRequestsAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		s.set(named("ada"))
		r := newRing(t, s)
		time.Sleep(time.Second)
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 50 {
			ctx, want := t.Context(), error(nil)
			if i == 0 {
				ctx, want = gone, context.Canceled
			}
			all.Go(func() {
				_, err := r.Find(ctx, HashOf("ada"), time.Millisecond)
				require.ErrorIs(t, err, want)
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		versions, _ := s.queries()
		require.Equal(t, 2, versions)
	})
}

// manyKeys are 100,000.
func manyKeys() *store {
	s := &store{}
	keys := make([]HashedKey, 100_000)
	for i := range keys {
		hash := HashOf(string(binary.LittleEndian.AppendUint32(nil, uint32(i))))
		keys[i] = HashedKey{Hash: hash, Key: Key{Account: uuid.New()}}
	}
	s.set(keys...)
	return s
}

func TestRing_ReadsManyKeysInPages(t *testing.T) {
	t.Parallel()
	s := manyKeys()
	r := newRing(t, s)
	require.Equal(t, len(s.keys), r.Len())
	_, pages := s.queries()
	require.Equal(t, len(s.keys)/pageSize+1, pages)
	key, err := r.Find(t.Context(), s.keys[77_777].Hash, time.Hour)
	require.NoError(t, err)
	require.Equal(t, s.keys[77_777].Account, key.Account)
}

// TestRing_ReadsManyKeysSlowly: reading takes 21 seconds, and ends.
func TestRing_ReadsManyKeysSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := manyKeys()
		s.slow = time.Second
		r := newRing(t, s)
		require.Equal(t, len(s.keys), r.Len())
	})
}

// TestRing_TrustsNoReadingThatBeganTooEarly: a key is revoked while all keys are read slowly.
func TestRing_TrustsNoReadingThatBeganTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{slow: 3 * time.Second}
		s.set(named("ada"))
		r := newRing(t, s)
		s.set(named("ada"), named("bob"))
		var reading sync.WaitGroup
		reading.Go(func() { require.NoError(t, r.Refresh(t.Context())) })
		time.Sleep(time.Second / 2)
		s.set(named("bob"))
		time.Sleep(2 * time.Second)
		_, err := r.Find(t.Context(), HashOf("ada"), 2*time.Second)
		require.ErrorIs(t, err, ErrUnknown)
		reading.Wait()
	})
}

func TestRing_LeavesOutKeysThatHaveEnded(t *testing.T) {
	t.Parallel()
	s := &store{}
	ended := named("bob")
	ended.Ended = true
	s.set(named("ada"), ended)
	r := newRing(t, s)
	require.Equal(t, 1, r.Len())
	_, err := r.Find(t.Context(), HashOf("bob"), time.Hour)
	require.ErrorIs(t, err, ErrUnknown)
}

// BenchmarkRing_Reads says what 100,000 keys take: the bytes of the ring, and the time to make it
// of what the store returned.
func BenchmarkRing_Reads(b *testing.B) {
	s := manyKeys()
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	var r *Ring
	for b.Loop() {
		s.version = uuid.New()
		r = newRing(b, s)
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	runtime.KeepAlive(r)
}
