package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// contenders acquire one key at once, rounds times.
const (
	contenders = 64
	rounds     = 10
)

func concurrencyCases(run cases) {
	run("of many that acquire at once one wins", func(t *testing.T, b *bench) {
		for round := range rounds {
			b.requireOneWinner(t, fmt.Sprintf("key-%d", round), b.Store.Acquire)
		}
	})
	run("of many that take over at once one wins", func(t *testing.T, b *bench) {
		for round := range 3 {
			key := fmt.Sprintf("key-%d", round)
			b.held(t, key, short)
			b.pass(t)
			b.requireOneWinner(t, key, b.Store.Acquire)
		}
	})
	run("of many that retry until there is an answer one completes", func(t *testing.T, b *bench) {
		b.requireOneAnswer(t, "key")
	})
	run("keys are independent of each other", func(t *testing.T, b *bench) {
		b.together(t, func(i int) error {
			existing, err := b.Store.Acquire(t.Context(), b.pending(fmt.Sprintf("key-%d", i)), long)
			if err == nil && existing != nil {
				err = fmt.Errorf("key %d was held already", i)
			}
			return err
		})
	})
}

// acquiring is Acquire of a store, or Repair.
type acquiring func(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error)

// requireOneWinner has all contenders acquire a key at once.
func (b *bench) requireOneWinner(t *testing.T, key string, acquire acquiring) {
	t.Helper()
	var mu sync.Mutex
	var winners []idempotency.Owner
	met := map[idempotency.Owner]int{}
	b.together(t, func(int) error {
		pending := b.pending(key)
		existing, err := acquire(t.Context(), pending, long)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && existing == nil {
			winners = append(winners, pending.Owner)
		} else if err == nil {
			met[existing.Owner]++
		}
		return err
	})
	require.Len(t, winners, 1, key)
	require.Equal(t, map[idempotency.Owner]int{winners[0]: contenders - 1}, met, "all others meet the winner")
}

// requireOneAnswer makes every contender do what clients and handlers do: acquire and complete, or
// try again. The holder of the key releases it the first few times, as a failing handler does.
func (b *bench) requireOneAnswer(t *testing.T, key string) {
	t.Helper()
	const failures = 5
	var attempts, completions atomic.Int64
	var answers sync.Map
	b.together(t, func(i int) error {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			pending := b.pending(key)
			existing, err := b.Store.Acquire(t.Context(), pending, long)
			switch {
			case err != nil:
				return err
			case existing != nil && existing.Status == idempotency.StatusInProgress:
				continue
			case existing != nil:
				answers.Store(string(existing.Response.Body), true)
				return nil
			case attempts.Add(1) <= failures:
				err = b.Store.Release(t.Context(), pending)
			default:
				completions.Add(1)
				err = b.Store.Complete(t.Context(), done(pending, fmt.Sprintf("answer of %d", i)), long)
			}
			if err != nil {
				return err
			}
		}
		return fmt.Errorf("contender %d got no answer in %s", i, patience)
	})
	require.EqualValues(t, failures+1, attempts.Load())
	require.EqualValues(t, 1, completions.Load())
	different := 0
	answers.Range(func(any, any) bool { different++; return true })
	require.Equal(t, 1, different, "everybody got the same answer")
}

// together runs f contenders times, all starting at one moment.
func (b *bench) together(t *testing.T, f func(i int) error) {
	t.Helper()
	start, errs := make(chan struct{}), make([]error, contenders)
	var running sync.WaitGroup
	for i := range contenders {
		running.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
