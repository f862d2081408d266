package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// renderID is the reply to whatever was made.
func renderID[T any](T, *checkout.Error) checkout.Reply { return checkout.Reply{Status: 201} }

// createCustomer makes an event by the shop's own way to commit.
func (b *bundle) createCustomer() {
	b.t.Helper()
	_, err := postgres.NewStore(b.pool, postgres.Options{}).CreateCustomer(b.ctx, checkout.Call{Account: b.account},
		checkout.NewCustomer{Name: "Ada", Email: uuid.NewString() + "@example.com"}, renderID)
	require.NoError(b.t, err)
}

// listeners is how many connections wait for notifications.
func (b *bundle) listeners() int {
	b.t.Helper()
	return value[int](b, "SELECT count(*) FROM pg_stat_activity WHERE query = 'listen oncepay_outbox' AND datname = current_database()")
}

func TestACommitWakesTheRelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	b.start(b.relay(stream)) // which polls once an hour
	b.await("the relay listens", func() bool { return b.listeners() == 1 })

	const events = 20
	lags := make([]time.Duration, 0, events)
	for i := range events {
		b.createCustomer()
		committed := time.Now()
		b.await("the event is published", func() bool { return len(stream.published()) > i })
		lags = append(lags, time.Since(committed))
	}
	slices.Sort(lags)
	t.Logf("lag: median %s, maximum %s", lags[events/2], lags[events-1])
	require.Less(t, lags[events/2], outbox.DefaultPoll/5, "median")
}

// deaf is a store that wakes nobody.
type deaf struct{ outbox.Store }

func (deaf) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAnEventIsFoundByPollingWhenNobodyWakesTheRelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	looked := make(chan struct{})
	b.start(outbox.NewRelay(&looking{Store: deaf{b}, looked: looked}, stream, outbox.RelayConfig{Poll: 10 * time.Millisecond, Logger: quiet}))
	<-looked // at an empty outbox
	subject := b.subject()
	b.emit(subject, 3)
	b.await("all is published", func() bool { return len(stream.numbers(subject)) == 3 })
}

// looking is a store that tells when somebody has looked for events for the first time.
type looking struct {
	outbox.Store
	looked chan struct{}
	once   sync.Once
}

func (l *looking) Claim(ctx context.Context, claim uuid.UUID, limit int, lease time.Duration) ([]outbox.Event, error) {
	defer l.once.Do(func() { close(l.looked) })
	return l.Store.Claim(ctx, claim, limit, lease)
}

// wakeTimeout is far above what a notification takes, and far below the interval at which a silent connection is checked.
const wakeTimeout = 10 * time.Second

// ears hears what wakes relays. The first time is when the listening begins, for what was there before.
func (b *bundle) ears() (woken chan struct{}) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	woken, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- b.Listen(ctx, func() { woken <- struct{}{} }) }()
	b.t.Cleanup(func() {
		cancel()
		require.ErrorIs(b.t, <-ended, context.Canceled)
	})
	b.hear(woken)
	return woken
}

func (b *bundle) hear(woken chan struct{}) {
	b.t.Helper()
	select {
	case <-woken:
	case <-time.After(wakeTimeout):
		require.FailNow(b.t, "not woken")
	}
}

func TestWhateverMakesEventsDueWakesTheRelays(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t)).seller()
	s.sellUnpaid()
	s.exec("UPDATE orders SET expires_at = now()")
	woken := s.ears()
	for what, do := range map[string]func() error{
		"a command": func() error { s.sellUnpaid(); return nil },
		"expiry":    func() error { _, err := s.store.ExpireOrders(s.ctx, 10); return err },
		"retry":     func() error { return outbox.Retry(s.ctx, s, io.Discard) },
		"replay":    func() error { return outbox.Replay(s.ctx, s, io.Discard, time.Minute) },
	} {
		require.NoError(t, do(), what)
		s.hear(woken)
		require.Empty(t, woken, what)
	}
}

func TestARelayListensAgainAfterItsConnectionBroke(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	b.start(b.relay(stream))
	b.await("the relay listens", func() bool { return b.listeners() == 1 })
	b.exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query = 'listen oncepay_outbox' AND datname = current_database()")
	b.createCustomer() // nobody listens now, or again already: it is found in either case
	b.await("the first is published", func() bool { return len(stream.published()) == 1 })
	b.await("the relay listens", func() bool { return b.listeners() == 1 })
	b.createCustomer()
	b.await("the second is published", func() bool { return len(stream.published()) == 2 })
}

func TestEventsWaitForABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := testenv.RedisServer(t)
	client := open(t, server.URL)
	server.Stop()
	relay := b.start(outbox.NewRelay(b, outbox.NewRedisStream(client), outbox.RelayConfig{
		Poll: 10 * time.Millisecond, MaxAttempts: 1, Logger: quiet}))
	subject := b.subject()
	b.emit(subject, 3)
	b.await("several passes fail", func() bool { return b.stats(relay).Troubles >= 3 })
	stats := b.stats(relay)
	require.EqualValues(t, 3, stats.Waiting)
	require.Positive(t, stats.Oldest)
	require.Zero(t, stats.Dead, "an outage is no event's fault")
	require.Zero(t, stats.Refused)

	server.Start()
	b.await("all is published", func() bool { return b.waiting() == 0 })
	entries := client.XRange(b.ctx, outbox.DefaultStream, "-", "+").Val()
	require.NotEmpty(t, entries)
	first := entries[0].Values
	require.Equal(t, subject.String(), first["subject"])
	require.Equal(t, b.account.String(), first["account_id"])
	require.Equal(t, "test.happened", first["type"])
	require.Equal(t, "test", first["aggregate"])
	require.JSONEq(t, `{"number": 1}`, first["data"].(string))
	require.Contains(t, first, "event_id")
	require.Contains(t, first, "created_at")
}

func TestAReleasedEventIsDueAtOnceAndNotCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{before: func(outbox.Event) error { return fmt.Errorf("%w: away", outbox.ErrUnavailable) }}
	relay := b.relay(stream) // its lease is an hour
	subject := b.subject()
	b.emit(subject, 1)
	for range 5 {
		claimed, err := relay.RunOnce(b.ctx)
		require.ErrorIs(t, err, outbox.ErrUnavailable)
		require.Equal(t, 1, claimed)
	}
	stream.before = nil
	b.pass(relay, 1)
	require.Equal(t, []int{1}, stream.numbers(subject))
}

func TestAnEventThatIsRefusedTooOftenBlocksItsSubjectAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	poisoned, healthy := b.subject(), b.subject()
	refusing := func(e outbox.Event) error {
		if e.Subject == poisoned && numberOf(e) == 2 {
			return errors.New("the data is too strange")
		}
		return nil
	}
	stream := &recorder{before: refusing}
	relay := b.relay(stream)
	b.emit(poisoned, 4)
	b.emit(healthy, 4)

	b.pass(relay, 2) // the first of each
	b.pass(relay, 2) // one is refused
	b.pass(relay, 1) // it pauses, and its subject with it
	for range 2 {
		b.exec("UPDATE outbox SET due_at = now() WHERE attempts > 0")
		_, err := relay.RunOnce(b.ctx)
		require.NoError(t, err)
	}
	b.exec("UPDATE outbox SET due_at = now() WHERE attempts > 0")
	b.pass(relay, 0)
	require.Equal(t, []int{1}, stream.numbers(poisoned))
	require.Equal(t, upTo(4), stream.numbers(healthy))
	stats := b.stats(relay)
	require.EqualValues(t, 1, stats.Dead)
	require.EqualValues(t, 2, stats.Waiting)
	require.EqualValues(t, 3, stats.Refused)
	require.EqualValues(t, 5, stats.Published)

	var list strings.Builder
	require.NoError(t, outbox.List(b.ctx, b, &list, 2))
	lines := strings.Split(strings.TrimSpace(list.String()), "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `^ID +STATE +TYPE +SUBJECT +AGE +ATTEMPTS +LAST ERROR$`, lines[0])
	require.Regexp(t, `^\d+ +dead +test\.happened +`+poisoned.String()+` +\ds +3 +"the data is too strange"$`, lines[1])
	require.Regexp(t, `^\d+ +blocked +test\.happened +`+poisoned.String(), lines[2])
	require.Equal(t, "3 unpublished, 1 of them dead letters; 2 shown", lines[3])

	stream.before = nil
	var said strings.Builder
	require.NoError(t, outbox.Retry(b.ctx, b, &said))
	require.Equal(t, "1 events will be tried again\n", said.String())
	for range 3 {
		b.pass(relay, 1)
	}
	require.Equal(t, upTo(4), stream.numbers(poisoned))
	list.Reset()
	require.NoError(t, outbox.List(b.ctx, b, &list, 2))
	require.Equal(t, "every event is published\n", list.String())
}

func TestRetryTakesTheEventsThatAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{before: func(outbox.Event) error { return errors.New("no") }}
	relay := outbox.NewRelay(b, stream, outbox.RelayConfig{MaxAttempts: 1, Lease: never, Logger: quiet})
	b.emit(b.subject(), 1)
	b.emit(b.subject(), 1)
	b.pass(relay, 2)
	events, err := b.Unpublished(b.ctx, 10)
	require.NoError(t, err)
	require.Len(t, events, 2)

	n, err := b.Retry(b.ctx, []int64{events[1].Position})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	stream.before = nil
	b.pass(relay, 1)
	require.Equal(t, events[1].Position, stream.published()[0].Position)
}

func TestTheStreamRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client := open(t, testenv.Redis(t))
	relay := outbox.NewRelay(b, outbox.NewRedisStream(client), outbox.RelayConfig{MaxAttempts: 1, Logger: quiet})
	large, normal := b.subject(), b.subject()
	b.emit(large, 1)
	b.exec("UPDATE outbox SET data = jsonb_build_object('text', repeat('x', $1))", outbox.MaxDataBytes)
	b.emit(normal, 1)
	b.pass(relay, 2)
	require.EqualValues(t, 1, client.XLen(b.ctx, outbox.DefaultStream).Val())
	require.EqualValues(t, 1, b.stats(relay).Dead)
}

func TestReplaySendsAgainWhatWasPublishedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream := &recorder{}
	relay := b.relay(stream)
	old, recent := b.subject(), b.subject()
	b.emit(old, 1)
	b.pass(relay, 1)
	b.exec("UPDATE outbox SET published_at = now() - interval '11 minutes'")
	b.emit(recent, 3)
	b.exec("UPDATE outbox SET created_at = now() - interval '1 hour' WHERE subject = $1", recent) // what counts is when it was sent
	for range 3 {
		b.pass(relay, 1)
	}
	require.Error(t, outbox.Replay(b.ctx, b, &strings.Builder{}, 0))
	var said strings.Builder
	require.NoError(t, outbox.Replay(b.ctx, b, &said, 10*time.Minute))
	require.Equal(t, "3 events will be published again\n", said.String())
	for range 3 {
		b.pass(relay, 1)
	}
	b.pass(relay, 0)
	require.Equal(t, []int{1}, stream.numbers(old))
	require.Equal(t, []int{1, 2, 3, 1, 2, 3}, stream.numbers(recent))
	events := stream.published()
	require.Equal(t, events[1].ID, events[4].ID, "a replayed event keeps the ID to deduplicate by")
}

func TestReplayTakesBackWhatIsBeingPublished(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(b.subject(), 1)
	claim := uuid.New()
	events, err := b.Claim(b.ctx, claim, 10, never)
	require.NoError(t, err)
	// It is published here, and the broker loses it.
	_, err = b.Replay(b.ctx, time.Minute)
	require.NoError(t, err)
	require.NoError(t, b.MarkPublished(b.ctx, claim, []int64{events[0].Position}))
	b.pass(b.relay(&recorder{}), 1)
}

func TestStoppingFinishesWhatWasClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	publishing, goOn := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(publishing) })
	stream := &recorder{before: func(outbox.Event) error {
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
	require.Equal(t, 1, value[int](b, "SELECT count(*) FROM outbox WHERE published_at IS NOT NULL AND claim IS NULL"))
	require.Len(t, stream.published(), 1, "a stopped relay claims no more")
}

func TestARelayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(b.ctx)
	relay := b.relay(&recorder{})
	relay.Start(ctx)
	b.await("the relay listens", func() bool { return b.listeners() == 1 })
	cancel()
	relay.Stop()
	b.await("its connection is closed", func() bool { return b.listeners() == 0 })
}
