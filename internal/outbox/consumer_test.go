package outbox_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// soon is after how long tests take over what a consumer left.
const soon = 50 * time.Millisecond

// shop is an outbox with a stream, and the sample consumers.
type shop struct {
	*bundle
	client redis.UniversalClient
	inbox  *postgres.Inbox
	stream *outbox.RedisStream
}

// setupShop uses the Redis at a URL. A test that flushes it needs one of its own.
func setupShop(t *testing.T, redisURL string) *shop {
	t.Helper()
	b, client := setup(t), open(t, redisURL)
	return &shop{bundle: b, client: client, inbox: postgres.NewInbox(b.pool, false), stream: outbox.NewRedisStream(client)}
}

// subscription is the sample consumer of a group.
func (s *shop) subscription(group string) outbox.Subscription {
	s.t.Helper()
	for _, sub := range s.inbox.Subscriptions() {
		if sub.Name == group {
			return sub
		}
	}
	require.FailNow(s.t, "no such consumer", group)
	return outbox.Subscription{}
}

func (s *shop) consumer(name string, sub outbox.Subscription) *outbox.Consumer {
	return outbox.NewConsumer(s.client, name, sub, outbox.ConsumerConfig{Takeover: soon, Logger: quiet})
}

// startConsumers starts all consumers under a name.
func (s *shop) startConsumers(name string) (stop func()) {
	var started []*outbox.Consumer
	for _, sub := range s.inbox.Subscriptions() {
		consumer := s.consumer(name, sub)
		consumer.Start(s.ctx)
		s.t.Cleanup(consumer.Stop)
		started = append(started, consumer)
	}
	return func() {
		for _, consumer := range started {
			consumer.Stop()
			consumer.Stop()
		}
	}
}

// orderPlaced is an event of a new order, in the outbox.
func (s *shop) orderPlaced() outbox.Event {
	event := outbox.Event{ID: uuid.New(), AccountID: s.account, Type: "order.placed", Aggregate: "order",
		Subject: uuid.New(), Data: []byte("{}"), CreatedAt: time.Now()}
	event.Position = value[int64](s.bundle, `INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
		VALUES ($1, $2, $3, $4, $5, '{}') RETURNING id`, event.ID, event.AccountID, event.Type, event.Aggregate, event.Subject)
	return event
}

func (s *shop) publish(events ...outbox.Event) {
	s.t.Helper()
	require.NoError(s.t, s.stream.Publish(s.ctx, events))
}

func (s *shop) confirmations(event outbox.Event) int {
	s.t.Helper()
	return value[int](s.bundle, "SELECT count(*) FROM order_confirmations WHERE order_id = $1", event.Subject)
}

// pending is how many events of a group were taken and not finished.
func (s *shop) pending(group string) int64 {
	s.t.Helper()
	pending, err := s.client.XPending(s.ctx, outbox.DefaultStream, group).Result()
	require.NoError(s.t, err)
	return pending.Count
}

const confirmations = "order-confirmations"

func TestConsumer_MakesEachEffectOnce(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	var events []outbox.Event
	for range 10 {
		events = append(events, s.orderPlaced())
	}
	for range 4 {
		s.publish(events...)
	}
	s.publish(append(slices.Clone(events), events...)...) // twice in one batch
	sub := s.subscription(confirmations)
	a, b := s.consumer("a", sub), s.consumer("b", sub)
	for _, consumer := range []*outbox.Consumer{a, b} {
		consumer.Start(s.ctx)
		t.Cleanup(consumer.Stop)
	}
	s.await("all is handled", func() bool {
		x, y := a.Stats(), b.Stats()
		return x.Handled+x.Repeated+y.Handled+y.Repeated >= 60
	})
	for _, event := range events {
		require.Equal(t, 1, s.confirmations(event))
	}
	require.EqualValues(t, 10, a.Stats().Handled+b.Stats().Handled)
}

func TestConsumer_TakesOverWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	event := s.orderPlaced()
	s.publish(event)
	s.takeAll("dead")
	require.EqualValues(t, 1, s.pending(confirmations))

	consumer := s.consumer("alive", s.subscription(confirmations))
	consumer.Start(s.ctx)
	t.Cleanup(consumer.Stop)
	s.await("the event is handled", func() bool { return consumer.Stats().Handled == 1 })
	s.await("the event is finished", func() bool { return s.pending(confirmations) == 0 })
	require.Equal(t, 1, s.confirmations(event))
}

// takeAll has a consumer take all there is, and stop.
func (s *shop) takeAll(consumer string) {
	s.t.Helper()
	require.NoError(s.t, s.client.XGroupCreate(s.ctx, outbox.DefaultStream, confirmations, "0").Err())
	_, err := s.client.XReadGroup(s.ctx, &redis.XReadGroupArgs{Group: confirmations, Consumer: consumer,
		Streams: []string{outbox.DefaultStream, ">"}}).Result()
	require.NoError(s.t, err)
}

func TestConsumer_FinishesWhatItLeftBeforeARestart(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	event := s.orderPlaced()
	s.publish(event)
	s.takeAll("api-1")
	consumer := outbox.NewConsumer(s.client, "api-1", s.subscription(confirmations), outbox.ConsumerConfig{Takeover: never, Logger: quiet})
	require.NoError(t, consumer.RunOnce(s.ctx, tick))
	require.Equal(t, 1, s.confirmations(event))
	require.Zero(t, s.pending(confirmations))
}

func TestConsumer_LeavesARepetitionWhenItDiesAfterTheEffect(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	event := s.orderPlaced()
	s.publish(event)
	sub := s.subscription(confirmations)
	effect := sub.Handle
	sub.Handle = func(ctx context.Context, events []outbox.Event) (int, error) {
		_, err := effect(ctx, events)
		return 0, errors.Join(err, errCrashed)
	}
	dying := s.consumer("dying", sub)
	require.NoError(t, dying.RunOnce(s.ctx, tick)) // makes the group
	require.ErrorIs(t, dying.RunOnce(s.ctx, tick), errCrashed)
	require.Equal(t, 1, s.confirmations(event))

	sub.Handle = effect
	next := s.consumer("next", sub)
	next.Start(s.ctx)
	t.Cleanup(next.Stop)
	s.await("the event comes again", func() bool { return next.Stats().Repeated == 1 })
	require.Equal(t, 1, s.confirmations(event))
}

func TestConsumer_TriesABatchAgainAfterTrouble(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	events := []outbox.Event{s.orderPlaced(), s.orderPlaced()}
	s.publish(events...)
	sub := s.subscription(confirmations)
	effect := sub.Handle
	var broken atomic.Bool
	broken.Store(true)
	sub.Handle = func(ctx context.Context, events []outbox.Event) (int, error) {
		if broken.Load() {
			return 0, errors.New("the database is away")
		}
		return effect(ctx, events)
	}
	consumer := outbox.NewConsumer(s.client, "a", sub, outbox.ConsumerConfig{Takeover: never, Logger: quiet})
	consumer.Start(s.ctx)
	t.Cleanup(consumer.Stop)
	s.await("it failed twice", func() bool { return consumer.Stats().Failed >= 4 })
	require.Zero(t, s.confirmations(events[0]))
	broken.Store(false)
	s.await("it is handled", func() bool { return s.confirmations(events[0]) == 1 && s.confirmations(events[1]) == 1 })
	s.await("all is finished", func() bool { return s.pending(confirmations) == 0 })
	require.Zero(t, value[int](s.bundle, "SELECT count(*) FROM dead_letters"))
}

func TestConsumer_PassesOverWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	require.NoError(t, s.client.XAdd(s.ctx, &redis.XAddArgs{Stream: outbox.DefaultStream, Values: []string{"hello", "world"}}).Err())
	event, other := s.orderPlaced(), s.orderPlaced()
	other.Type = "order.cancelled"
	s.publish(other, event)
	consumer := s.consumer("a", s.subscription(confirmations))
	require.NoError(t, consumer.RunOnce(s.ctx, tick)) // makes the group
	require.NoError(t, consumer.RunOnce(s.ctx, tick))
	require.Equal(t, outbox.ConsumerStats{Handled: 1, Unreadable: 1}, consumer.Stats())
	require.Equal(t, 1, s.confirmations(event))
	require.Zero(t, s.confirmations(other))
	require.Zero(t, s.pending(confirmations))
}

func TestConsumer_IgnoresWhatLiesBeforeTheCursor(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	before, after := s.orderPlaced(), s.orderPlaced()
	s.exec("UPDATE consumer_cursors SET position = $1", before.Position)
	s.publish(before, after)
	consumer := s.consumer("a", s.subscription(confirmations))
	require.NoError(t, consumer.RunOnce(s.ctx, tick)) // makes the group
	require.NoError(t, consumer.RunOnce(s.ctx, tick))
	require.Equal(t, outbox.ConsumerStats{Handled: 1, Repeated: 1}, consumer.Stats())
	require.Zero(t, s.confirmations(before))
	require.Equal(t, 1, s.confirmations(after))
}
