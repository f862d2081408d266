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
)

var errCrashed = errors.New("crashed")

// crashing is a store whose user is killed now and then after it has published, or paused for
// longer than its lease before it publishes.
type crashing struct {
	outbox.Store
	pause           time.Duration
	crashes, pauses atomic.Int64
}

func (c *crashing) Read(ctx context.Context, after int64, limit int) ([]outbox.Event, int64, error) {
	events, last, err := c.Store.Read(ctx, after, limit)
	if len(events) > 0 && rand.N(10) == 0 {
		c.pauses.Add(1)
		<-time.After(c.pause)
	}
	return events, last, err
}

func (c *crashing) Advance(ctx context.Context, owner uuid.UUID, from, to int64, lease time.Duration) error {
	if rand.N(5) == 0 {
		c.crashes.Add(1)
		return errCrashed
	}
	return c.Store.Advance(ctx, owner, from, to, lease)
}

// Release is what a killed relay does not do.
func (*crashing) Release(context.Context, uuid.UUID) error { return errCrashed }

func TestRelay_KeepsOrderPerSubject(t *testing.T) {
	t.Parallel()
	const subjects, each, relays, lease = 12, 25, 4, 50 * time.Millisecond
	b := setup(t)
	stream, store := &recorder{}, &crashing{Store: b, pause: 2 * lease}
	for range relays {
		b.start(outbox.NewRelay(store, stream, outbox.RelayConfig{
			Poll: 20 * time.Millisecond, Lease: lease, Batch: 5, Logger: quiet}))
	}
	ids := make([]uuid.UUID, subjects)
	for i := range ids {
		ids[i] = b.subject()
	}
	// Two writers for each subject, so that its lock is contended and transactions overlap.
	var writers sync.WaitGroup
	errs := make(chan error, 2*subjects*each)
	for i := range 2 * subjects {
		writers.Go(func() {
			for n := range each {
				errs <- pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
					err := b.emitIn(tx, ids[i/2])
					if err == nil && n%7 == 0 {
						err = b.emitIn(tx, ids[i/2])
					}
					return err
				})
			}
		})
	}
	writers.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	b.await("all is published", func() bool { return b.waiting() == 0 })

	all := value[int](b, "SELECT count(*) FROM outbox")
	for _, id := range ids {
		require.Equal(t, upTo(all/subjects), firsts(stream.numbers(id)))
	}
	require.Positive(t, store.pauses.Load(), "no pause before publishing")
	require.Positive(t, store.crashes.Load(), "no crash after publishing")
	require.Greater(t, len(stream.published()), all, "a crash after publishing repeats events")
}

func TestRelay_PublishesEachEventOnceWhenNothingFails(t *testing.T) {
	t.Parallel()
	const subjects, each, relays = 40, 5, 4
	b := setup(t)
	ids := make([]uuid.UUID, subjects)
	for i := range ids {
		ids[i] = b.subject()
		b.emit(ids[i], each)
	}
	stream := &recorder{}
	for range relays {
		b.start(outbox.NewRelay(b, stream, outbox.RelayConfig{Poll: 10 * time.Millisecond, Batch: 10, Logger: quiet}))
	}
	b.await("all is published", func() bool { return b.waiting() == 0 })
	for _, id := range ids {
		require.Equal(t, upTo(each), stream.numbers(id))
	}
}

// read reads the outbox from its beginning, and tells when that has returned.
func (b *bundle) read() (events func() []outbox.Event, done func() bool) {
	b.t.Helper()
	result, finished := make(chan []outbox.Event, 1), atomic.Bool{}
	go func() {
		events, _, err := b.Read(b.ctx, 0, 10)
		if err != nil {
			b.t.Error(err)
		}
		finished.Store(true)
		result <- events
	}()
	return func() []outbox.Event { return <-result }, finished.Load
}

// reading waits until a read waits for transactions to end. It knows these from its first look on;
// the statement is shown as the session's last one before that, when it has only been prepared. So
// the look has to be a later one.
func (b *bundle) reading() {
	b.t.Helper()
	var prepared *time.Time
	b.await("a relay waits for transactions to end", func() bool {
		at := value[*time.Time](b, `SELECT max(query_start) FROM pg_stat_activity
			WHERE query ~ 'FROM pg_locks' AND state = 'idle in transaction' AND datname = current_database() AND pid <> pg_backend_pid()`)
		if prepared == nil {
			prepared = at
		}
		return at != nil && at.After(*prepared)
	})
}

func TestRead_WaitsForAnEventThatIsCommittedLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late, early := b.subject(), b.subject()
	tx := b.begin()
	require.NoError(t, b.emitIn(tx, late)) // draws the lower position
	b.emit(early, 1)

	events, done := b.read()
	b.reading()
	require.False(t, done(), "the later event would be published first, and the cursor would pass the earlier one")
	require.NoError(t, tx.Commit(b.ctx))
	got := events()
	require.Len(t, got, 2)
	require.Equal(t, []uuid.UUID{late, early}, []uuid.UUID{got[0].Subject, got[1].Subject})
}

func TestRead_PassesOverWhatIsRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	never, committed := b.subject(), b.subject()
	tx := b.begin()
	require.NoError(t, b.emitIn(tx, never))
	b.emit(committed, 1)
	events, _ := b.read()
	b.reading()
	require.NoError(t, tx.Rollback(b.ctx))
	got := events()
	require.Len(t, got, 1)
	require.Equal(t, committed, got[0].Subject)
	require.EqualValues(t, 2, got[0].Position)
}

func TestRead_DoesNotWaitForTransactionsThatBeganLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx := b.begin()
	require.NoError(t, b.emitIn(tx, b.subject()))
	events, _ := b.read()
	b.reading()
	later := b.begin()
	require.NoError(t, b.emitIn(later, b.subject()))
	require.NoError(t, tx.Commit(b.ctx))
	require.Len(t, events(), 1)
}

func TestRead_DoesNotWaitForTransactionsThatWroteNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.begin().Exec(b.ctx, "SELECT pg_current_xact_id()") // a session's, for hours
	require.NoError(t, err)
	b.emit(b.subject(), 1)
	events, _, err := b.Read(b.ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
}

func TestRead_FailsWhenTheSequenceIsBehindTheCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(b.subject(), 3)
	relay := b.relay(&recorder{})
	b.pass(relay, 3)
	b.exec("SELECT setval('outbox_id_seq', 2)") // as after a restore without sequences
	_, err := relay.RunOnce(b.ctx)
	require.ErrorContains(t, err, "behind the outbox's cursor")
}

// A session that draws positions in advance would commit them after Read has passed them.
func TestOutbox_DrawsPositionsOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, 1, value[int](b, "SELECT cache_size FROM pg_sequences WHERE sequencename = 'outbox_id_seq'"))
}
