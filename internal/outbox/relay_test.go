package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// renderID is the reply to whatever was made.
func renderID(any, *checkout.Error) any { return authority.Answer{Status: 201} }

func TestRelay_IsWokenByACommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := b.start(b.relay(stream)) // which polls once an hour
	store := postgres.NewStore(b.pool, postgres.Options{EventsWritten: relay.Wake})

	const events = 20
	lags := make([]time.Duration, 0, events)
	for i := range events {
		_, err := store.CreateCustomer(b.ctx, checkout.Call{Account: b.account, Encode: renderID},
			checkout.NewCustomer{Name: "Ada", Email: uuid.NewString() + "@example.com"})
		require.NoError(t, err)
		committed := time.Now()
		b.await("the event is published", func() bool { return len(stream.published()) > i })
		lags = append(lags, time.Since(committed))
	}
	slices.Sort(lags)
	t.Logf("lag: median %s, maximum %s", lags[events/2], lags[events-1])
}

func TestRelay_FindsEventsByPolling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	subject := b.subject()
	b.emit(subject, 1)
	b.start(b.fast(stream))
	b.await("the first is published", func() bool { return len(stream.numbers(subject)) == 1 })
	b.emit(subject, 3) // no notification wakes it
	b.await("all is published", func() bool { return len(stream.numbers(subject)) == 4 })
}

func TestRelay_KeepsEventsWhileTheStreamIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := testenv.RedisServer(t)
	client := open(t, server.URL)
	server.Stop()
	relay := b.start(b.fast(outbox.NewRedisStream(client)))
	subject := b.subject()
	b.emit(subject, 3)
	b.await("several passes fail", func() bool { return b.stats(relay).Troubles >= 3 })
	stats := b.stats(relay)
	require.EqualValues(t, 3, stats.Waiting)
	require.Positive(t, stats.Oldest)

	server.Start()
	b.await("all is published", func() bool { return b.waiting() == 0 })
	entries := client.XRange(b.ctx, outbox.DefaultStream, "-", "+").Val()
	require.NotEmpty(t, entries)
	first := entries[0].Values
	require.Equal(t, subject.String(), first["subject"])
	require.Equal(t, b.account.String(), first["account_id"])
	require.Equal(t, "test.happened", first["type"])
	require.Equal(t, "test", first["aggregate"])
	require.Equal(t, "1", first["position"])
	require.JSONEq(t, `{"number": 1}`, first["data"].(string))
	require.Contains(t, first, "event_id")
	require.Contains(t, first, "created_at")
}

// unreachable is a stream that one replica can't reach.
type unreachable struct{ outbox.Stream }

func (unreachable) State(context.Context) (outbox.StreamState, error) {
	return outbox.StreamState{}, errors.New("cut off")
}

func TestRelay_LeavesTheOutboxToOneThatReachesTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cutOff := b.start(b.fast(unreachable{}))
	b.await("the relay without a stream fails", func() bool { return b.stats(cutOff).Troubles >= 1 })
	stream, subject := &recorder{}, b.subject()
	b.start(b.fast(stream))
	b.emit(subject, 3)
	b.await("the other one publishes", func() bool { return len(stream.numbers(subject)) == 3 })
}

func TestRelay_WaitsWhileAnotherHoldsTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.relay(&recorder{}), b.relay(&recorder{})
	b.emit(b.subject(), 1)
	b.pass(first, 1)
	b.emit(b.subject(), 1)
	_, err := second.RunOnce(b.ctx)
	require.ErrorIs(t, err, outbox.ErrLeased)
	first.Start(b.ctx)
	first.Stop() // which releases the lease
	b.exec("UPDATE outbox_cursor SET position = 1")
	b.pass(second, 1)
}

func TestRelay_TakesOverWhenTheLeaseHasEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Lease(b.ctx, uuid.New(), 50*time.Millisecond) // of a relay that dies
	require.NoError(t, err)
	stream, subject := &recorder{}, b.subject()
	b.emit(subject, 1)
	b.start(b.fast(stream))
	b.await("it is published", func() bool { return len(stream.numbers(subject)) == 1 })
}

// TestRelay_TakesALeaseFromBeforeTheClockWasSetBack or else nothing is published until the clock
// has come so far again.
func TestRelay_TakesALeaseFromBeforeTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Lease(b.ctx, uuid.New(), time.Minute) // of a relay that dies
	require.NoError(t, err)
	b.exec("UPDATE outbox_cursor SET leased_until = now() + interval '1 year'")
	b.emit(b.subject(), 1)
	b.pass(b.relay(&recorder{}), 1)
}

func TestRelay_LosesThePassWithTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subject := b.subject()
	b.emit(subject, 1)
	second := b.relay(&recorder{})
	stream := &recorder{before: func([]outbox.Event) error { // another relay takes over while it publishes
		b.exec("UPDATE outbox_cursor SET leased_until = now()")
		b.pass(second, 1)
		b.emit(subject, 1)
		b.pass(second, 1)
		return nil
	}}
	_, err := b.relay(stream).RunOnce(b.ctx)
	require.ErrorIs(t, err, outbox.ErrLeased)
	require.Equal(t, 2, value[int](b, "SELECT position FROM outbox_cursor"), "the cursor is not moved back")
}

// slow is a store that is paused after it has read events.
type slow struct {
	outbox.Store
	pause time.Duration
}

func (s slow) Read(ctx context.Context, after int64, limit int) ([]outbox.Event, int64, error) {
	events, last, err := s.Store.Read(ctx, after, limit)
	<-time.After(s.pause)
	return events, last, err
}

func TestRelay_PublishesNothingAfterItsLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(b.subject(), 1)
	client := open(t, testenv.Redis(t))
	relay := outbox.NewRelay(slow{b, 100 * time.Millisecond}, outbox.NewRedisStream(client),
		outbox.RelayConfig{Lease: 50 * time.Millisecond, Logger: quiet})
	_, err := relay.RunOnce(b.ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, client.Exists(b.ctx, outbox.DefaultStream).Val())
	require.EqualValues(t, 1, b.waiting())
}

func TestReplay_PublishesAgainWhatHappenedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := outbox.NewRelay(b, stream, outbox.RelayConfig{Lease: 50 * time.Millisecond, Poll: 10 * time.Millisecond, Logger: quiet})
	old, recent := b.subject(), b.subject()
	b.emit(old, 1)
	b.exec("UPDATE outbox SET created_at = now() - interval '11 minutes'")
	b.emit(recent, 3)
	b.start(relay)
	b.await("all is published", func() bool { return b.waiting() == 0 })

	require.Error(t, outbox.Replay(b.ctx, b, &strings.Builder{}, 0))
	var said strings.Builder
	require.NoError(t, outbox.Replay(b.ctx, b, &said, 10*time.Minute))
	require.Equal(t, "3 events will be published again\n", said.String())
	b.await("they are published again", func() bool { return len(stream.numbers(recent)) == 6 })
	require.Equal(t, []int{1, 2, 3, 1, 2, 3}, stream.numbers(recent))
	require.Equal(t, []int{1}, stream.numbers(old))
	events := stream.published()
	require.Equal(t, events[1].ID, events[4].ID, "a replayed event keeps the ID to deduplicate by")
}

func TestRelay_StopFinishesThePass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	publishing, goOn := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(publishing) })
	stream := &recorder{before: func([]outbox.Event) error {
		begun()
		<-goOn
		return nil
	}}
	relay := b.relay(stream)
	relay.Stop() // before the start
	b.emit(b.subject(), 2)
	relay.Start(b.ctx)
	relay.Start(b.ctx) // is started already
	<-publishing
	stopped := make(chan struct{})
	go func() {
		relay.Stop()
		relay.Stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		require.Fail(t, "stopped while it was publishing")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-stopped
	require.Zero(t, b.waiting(), "what was begun is brought to an end")
	require.True(t, value[bool](b, "SELECT owner IS NULL FROM outbox_cursor"), "the lease is released")
}

func TestRelay_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(b.ctx)
	relay := b.relay(&recorder{})
	relay.Start(ctx)
	cancel()
	relay.Stop()
}
