package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

const crowd = 64

// together runs f in many goroutines, and returns their errors.
func together(f func(i int) error) error {
	errs := make([]error, crowd)
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// trips counts the round trips of a client, and can delay them.
type trips struct {
	count atomic.Int64
	enter func()
}

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count.Add(1)
		h.enter()
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.count.Add(1)
		h.enter()
		return next(ctx, cmds)
	}
}

// hooked makes a patient client of the server whose round trips call enter.
func hooked(t *testing.T, server string, enter func()) (redis.UniversalClient, *trips) {
	t.Helper()
	client, h := openPatient(t, server), &trips{enter: enter}
	client.AddHook(h)
	return client, h
}

// TestBatch_SharesRoundTripsUnderLoad: with a latency of 2 ms per round trip, 64 callers find
// others to share it with. Alone, each command has its own.
func TestBatch_SharesRoundTripsUnderLoad(t *testing.T) {
	t.Parallel()
	client, h := hooked(t, testenv.Redis(t), func() { time.Sleep(2 * time.Millisecond) })
	store := redisstore.New(client)
	const each = 20
	require.NoError(t, together(func(i int) error {
		for n := range each {
			record := pending(fmt.Sprintf("key-%d-%d", i, n))
			if existing, err := store.Acquire(t.Context(), record, time.Minute); err != nil || existing != nil {
				return fmt.Errorf("acquire: %v, %w", existing, err)
			}
			if err := store.Complete(t.Context(), done(record), time.Minute); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Less(t, h.count.Load(), int64(crowd*each*2/6), "round trips")

	before := h.count.Load()
	_, err := store.Acquire(t.Context(), pending("alone"), time.Minute)
	require.NoError(t, err)
	require.Equal(t, before+1, h.count.Load())
}

// TestBatch_EachCommandHasItsOwnReply mixes commands that succeed, conflict and fail.
// The server is its own: SCRIPT FLUSH reaches every database, and other tests count attempts.
func TestBatch_EachCommandHasItsOwnReply(t *testing.T) {
	t.Parallel()
	client, _ := hooked(t, testenv.RedisServer(t).URL, func() { time.Sleep(time.Millisecond) })
	store := redisstore.New(client)
	require.NoError(t, client.LPush(t.Context(), "idempotency:acct_1:list", "x").Err())
	held := pending("held")
	_, err := store.Acquire(t.Context(), held, time.Minute)
	require.NoError(t, err)
	for round := range 10 {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		require.NoError(t, together(func(i int) error {
			switch i % 4 {
			case 0:
				_, err := store.Acquire(t.Context(), pending("list"), time.Minute)
				return expect(idempotency.ErrCorrupt, err)
			case 1:
				met, err := store.Acquire(t.Context(), pending("held"), time.Minute)
				if err != nil || met.Owner != held.Owner {
					return fmt.Errorf("met %v, %w", met, err)
				}
				return nil
			case 2:
				return expect(idempotency.ErrLost, store.Extend(t.Context(), pending("held"), time.Minute))
			default:
				met, err := store.Acquire(t.Context(), pending(fmt.Sprint(round, "-", i)), time.Minute)
				if met != nil {
					return fmt.Errorf("met %v", met)
				}
				return err
			}
		}))
	}
}

func expect(want, got error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("%w instead of %w", got, want)
	}
	return nil
}

// TestBatch_OnASilentServerEndsSoon: no call waits for more than a few timeouts.
func TestBatch_OnASilentServerEndsSoon(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.Redis(t))
	store := redisstore.New(open(t, detour))
	_, err := store.Acquire(t.Context(), pending("before"), time.Minute)
	require.NoError(t, err)
	way.Partition()
	began := time.Now()
	require.NoError(t, together(func(i int) error {
		_, err := store.Acquire(t.Context(), pending(fmt.Sprint(i)), time.Minute)
		return expect(idempotency.ErrUnavailable, err)
	}))
	require.Less(t, time.Since(began), 5*time.Second)
	way.Heal()
	require.Eventually(t, func() bool {
		_, err := store.Acquire(t.Context(), pending("after"), time.Minute)
		return err == nil
	}, patience, 10*time.Millisecond)
}

// TestBatch_ContextEndsTheWait: all round trips are under way when one more command comes.
func TestBatch_ContextEndsTheWait(t *testing.T) {
	t.Parallel()
	sent, answer := make(chan struct{}, crowd), make(chan struct{})
	client, _ := hooked(t, testenv.Redis(t), func() { sent <- struct{}{}; <-answer })
	store := redisstore.New(client)
	results := make(chan error, crowd)
	acquire := func(ctx context.Context, key string) {
		_, err := store.Acquire(ctx, pending(key), time.Minute)
		results <- err
	}
	const roundTrips = 4
	for i := range roundTrips {
		go acquire(t.Context(), fmt.Sprint(i))
		<-sent
	}
	ctx, cancel := context.WithCancel(t.Context())
	go acquire(ctx, "gives up")
	cancel()
	require.ErrorIs(t, <-results, context.Canceled)
	close(answer)
	for range roundTrips {
		require.NoError(t, <-results)
	}
	require.Zero(t, client.Exists(t.Context(), "idempotency:acct_1:gives up").Val(), "the command was not sent")
}

// TestBatch_SurvivesCallersThatGiveUp has callers leave at any moment: no other one may be
// left without an answer.
func TestBatch_SurvivesCallersThatGiveUp(t *testing.T) {
	t.Parallel()
	client, _ := hooked(t, testenv.Redis(t), func() { time.Sleep(rand.N(time.Millisecond)) })
	store := redisstore.New(client)
	require.NoError(t, together(func(i int) error {
		for n := range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if i%2 == 0 {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), rand.N(2*time.Millisecond))
			}
			_, err := store.Acquire(ctx, pending(fmt.Sprintf("key-%d-%d", i, n)), time.Minute)
			cancel()
			if err != nil && i%2 == 1 {
				return err
			}
		}
		return nil
	}))
}
