package outbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/testenv"
)

var errCrashed = errors.New("crashed")

// crashing is a store whose user is killed now and then: after it has claimed,
// or after it has published and before it has marked.
type crashing struct {
	outbox.Store
	claims, marks atomic.Int64 // crashes
}

func (c *crashing) Claim(ctx context.Context, claim uuid.UUID, limit int, lease time.Duration) ([]outbox.Event, error) {
	events, err := c.Store.Claim(ctx, claim, limit, lease)
	if len(events) > 0 && rand.N(10) == 0 {
		c.claims.Add(1)
		return nil, errCrashed
	}
	return events, err
}

func (c *crashing) MarkPublished(ctx context.Context, claim uuid.UUID, positions []int64) error {
	if rand.N(5) == 0 {
		c.marks.Add(1)
		return errCrashed
	}
	return c.Store.MarkPublished(ctx, claim, positions)
}

func TestSeveralRelaysKeepTheOrderOfEachSubjectWhateverCrashes(t *testing.T) {
	t.Parallel()
	const subjects, each, relays = 12, 25, 4
	b := setup(t)
	stream, store := &recorder{}, &crashing{Store: b}
	for range relays {
		b.start(outbox.NewRelay(store, stream, outbox.RelayConfig{
			Poll: 2 * time.Millisecond, Lease: 100 * time.Millisecond, Batch: 5, Logger: quiet}))
	}
	ids := make([]uuid.UUID, subjects)
	for i := range ids {
		ids[i] = b.subject()
	}
	// Two writers for each subject, so that its lock is contended.
	var writers sync.WaitGroup
	errs := make(chan error, 2*subjects*each)
	for i := range 2 * subjects {
		writers.Go(func() {
			for range each {
				errs <- pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error { return b.emitIn(tx, ids[i/2]) })
			}
		})
	}
	writers.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	b.await("all is published", func() bool { return b.waiting() == 0 })

	for _, id := range ids {
		require.Equal(t, upTo(2*each), firsts(stream.numbers(id)))
	}
	require.Positive(t, store.claims.Load(), "no crash after claiming")
	require.Positive(t, store.marks.Load(), "no crash before marking")
	require.Greater(t, len(stream.published()), 2*each*subjects, "a crash before marking repeats events")
}

func TestSeveralRelaysPublishEachEventOnceWhenNothingFails(t *testing.T) {
	t.Parallel()
	const subjects, each, relays = 40, 5, 8
	b := setup(t)
	ids := make([]uuid.UUID, subjects)
	for i := range ids {
		ids[i] = b.subject()
		b.emit(ids[i], each)
	}
	stream := &recorder{}
	for range relays {
		b.start(outbox.NewRelay(b, stream, outbox.RelayConfig{Poll: time.Millisecond, Lease: never, Batch: 10, Logger: quiet}))
	}
	b.await("all is published", func() bool { return b.waiting() == 0 })
	for _, id := range ids {
		require.Equal(t, upTo(each), stream.numbers(id))
	}
}

func TestAnEventThatIsCommittedLateIsNotMissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := b.relay(stream)
	late, early := b.subject(), b.subject()

	tx := b.begin()
	require.NoError(t, b.emitIn(tx, late)) // has the lower ID
	b.emit(early, 1)
	b.pass(relay, 1)
	require.Equal(t, []int{1}, stream.numbers(early))
	require.NoError(t, tx.Commit(b.ctx))
	b.pass(relay, 1)
	require.Equal(t, []int{1}, stream.numbers(late))
	events := stream.published()
	require.Greater(t, events[0].Position, events[1].Position, "the test needs the lower ID to come later")
}

func TestAnEventWaitsForTheUncommittedOneBeforeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := b.relay(stream)
	subject := b.subject()

	first := b.begin()
	require.NoError(t, b.emitIn(first, subject))
	second := make(chan error, 1)
	go func() {
		second <- pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error { return b.emitIn(tx, subject) })
	}()
	b.await("the second waits for the lock of the subject", func() bool {
		return value[int](b, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == 1
	})
	b.pass(relay, 0)
	require.NoError(t, first.Commit(b.ctx))
	require.NoError(t, <-second)
	b.pass(relay, 1)
	b.pass(relay, 1)
	require.Equal(t, []int{1, 2}, stream.numbers(subject))
}

func TestARelayPassesOverWhatAnotherIsJustClaiming(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := b.relay(stream)
	locked, free := b.subject(), b.subject()
	b.emit(locked, 1)
	b.emit(free, 1)

	_, err := b.begin().Exec(b.ctx, "SELECT FROM outbox WHERE subject = $1 FOR UPDATE", locked)
	require.NoError(t, err)
	b.pass(relay, 1)
	require.Equal(t, []int{1}, stream.numbers(free))
	require.Empty(t, stream.numbers(locked))
}

func TestAClaimIsRespectedUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subject := b.subject()
	b.emit(subject, 2)

	events, err := b.Claim(b.ctx, uuid.New(), 10, never)
	require.NoError(t, err)
	require.Len(t, events, 1)
	stream := &recorder{}
	relay := b.relay(stream)
	b.pass(relay, 0) // the second event waits for the first, too

	b.exec("UPDATE outbox SET due_at = now() WHERE id = $1", events[0].Position)
	b.pass(relay, 1)
	b.pass(relay, 1)
	require.Equal(t, []int{1, 2}, stream.numbers(subject))
}

func TestALostClaimSettlesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(b.subject(), 1)
	lost, current := uuid.New(), uuid.New()
	events, err := b.Claim(b.ctx, lost, 10, time.Nanosecond)
	require.NoError(t, err)
	require.Len(t, events, 1)
	b.await("the lease has ended", func() bool {
		events, err = b.Claim(b.ctx, current, 10, never)
		require.NoError(t, err)
		return len(events) == 1
	})
	position := events[0].Position

	require.NoError(t, b.MarkPublished(b.ctx, lost, []int64{position}))
	require.NoError(t, b.MarkRefused(b.ctx, lost, outbox.Refusal{Position: position, Reason: "late", Dead: true}))
	require.NoError(t, b.Release(b.ctx, lost))
	require.Equal(t, 1, value[int](b, "SELECT count(*) FROM outbox WHERE claim = $1 AND published_at IS NULL AND attempts = 0 AND due_at > now()", current))

	require.NoError(t, b.MarkPublished(b.ctx, current, []int64{position}))
	require.Zero(t, b.waiting())
}

func TestNothingIsPublishedAfterTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(b.subject(), 1)
	client := open(t, testenv.Redis(t))
	relay := outbox.NewRelay(b, outbox.NewRedisStream(client), outbox.RelayConfig{Lease: time.Nanosecond, Logger: quiet})
	_, err := relay.RunOnce(b.ctx) // as if it had been paused after claiming
	require.ErrorIs(t, err, outbox.ErrUnavailable)
	require.Zero(t, client.Exists(b.ctx, outbox.DefaultStream).Val())
	require.EqualValues(t, 1, b.waiting())
}
