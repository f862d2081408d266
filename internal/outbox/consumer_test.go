package outbox_test

import (
	"context"
	"errors"
	"strconv"
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
	return &shop{bundle: b, client: client, inbox: postgres.NewInbox(b.pool), stream: outbox.NewRedisStream(client)}
}

// subscription is the sample consumer of a group.
func (s *shop) subscription(group string) outbox.Subscription {
	s.t.Helper()
	for _, sub := range s.inbox.Subscriptions() {
		if sub.Group == group {
			return sub
		}
	}
	require.FailNow(s.t, "no such consumer", group)
	return outbox.Subscription{}
}

func (s *shop) consumer(name string, sub outbox.Subscription) *outbox.Consumer {
	return outbox.NewConsumer(s.client, name, sub, outbox.ConsumerConfig{Takeover: soon, Logger: quiet})
}

// startConsumers starts both sample consumers under a name.
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

// orderPlaced is an event of a new order.
func (s *shop) orderPlaced() outbox.Event {
	return outbox.Event{ID: uuid.New(), AccountID: s.account, Type: "order.placed", Aggregate: "order",
		Subject: uuid.New(), Data: []byte("{}"), CreatedAt: time.Now()}
}

func (s *shop) publish(events ...outbox.Event) {
	s.t.Helper()
	for _, err := range s.stream.Publish(s.ctx, events) {
		require.NoError(s.t, err)
	}
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

func TestAnEventThatComesAgainHasOneEffect(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	var events []outbox.Event
	for range 10 {
		events = append(events, s.orderPlaced())
	}
	for range 5 {
		s.publish(events...)
	}
	sub := s.subscription(confirmations)
	a, b := s.consumer("a", sub), s.consumer("b", sub)
	for _, consumer := range []*outbox.Consumer{a, b} {
		consumer.Start(s.ctx)
		t.Cleanup(consumer.Stop)
	}
	s.await("all is handled", func() bool {
		x, y := a.Stats(), b.Stats()
		return x.Handled+x.Repeated+y.Handled+y.Repeated >= 50
	})
	for _, event := range events {
		require.Equal(t, 1, s.confirmations(event))
	}
	require.EqualValues(t, 10, a.Stats().Handled+b.Stats().Handled)
}

func TestAConsumerTakesOverWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	event := s.orderPlaced()
	s.publish(event)
	require.NoError(t, s.client.XGroupCreate(s.ctx, outbox.DefaultStream, confirmations, "0").Err())
	_, err := s.client.XReadGroup(s.ctx, &redis.XReadGroupArgs{Group: confirmations, Consumer: "dead",
		Streams: []string{outbox.DefaultStream, ">"}}).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, s.pending(confirmations))

	consumer := s.consumer("alive", s.subscription(confirmations))
	consumer.Start(s.ctx)
	t.Cleanup(consumer.Stop)
	s.await("the event is handled", func() bool { return consumer.Stats().Handled == 1 })
	s.await("the event is finished", func() bool { return s.pending(confirmations) == 0 })
	require.Equal(t, 1, s.confirmations(event))
}

func TestAConsumerThatDiesAfterTheEffectLeavesARepetition(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	event := s.orderPlaced()
	s.publish(event)
	sub := s.subscription(confirmations)
	effect := sub.Handle
	sub.Handle = func(ctx context.Context, event outbox.Event) (bool, error) {
		_, err := effect(ctx, event)
		return false, errors.Join(err, errCrashed)
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

func TestAnEventThatFailsIsTriedAgainAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t))
	failing, healthy := s.orderPlaced(), s.orderPlaced()
	s.publish(failing)
	s.publish(healthy)
	sub := s.subscription(confirmations)
	effect := sub.Handle
	var broken atomic.Bool
	broken.Store(true)
	sub.Handle = func(ctx context.Context, event outbox.Event) (bool, error) {
		if event.ID == failing.ID && broken.Load() {
			return false, errors.New("no")
		}
		return effect(ctx, event)
	}
	consumer := s.consumer("a", sub)
	consumer.Start(s.ctx)
	t.Cleanup(consumer.Stop)
	s.await("the other one is handled", func() bool { return s.confirmations(healthy) == 1 })
	s.await("it failed twice", func() bool { return consumer.Stats().Failed >= 2 })
	require.Zero(t, s.confirmations(failing))
	broken.Store(false)
	s.await("it is handled", func() bool { return s.confirmations(failing) == 1 })
	s.await("all is finished", func() bool { return s.pending(confirmations) == 0 })
}

func TestAnEntryThatIsNoEventIsPassedOver(t *testing.T) {
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

func TestTheStreamIsBounded(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL)
	batch := make([]outbox.Event, 1000) // each is one write with a short time limit
	for i := range batch {
		batch[i] = s.orderPlaced()
		batch[i].Data = []byte(strconv.Itoa(i))
	}
	for range outbox.DefaultMaxLen/len(batch) + 1 {
		s.publish(batch...)
	}
	// Redis trims by whole nodes of its tree, of a hundred entries.
	require.InDelta(t, outbox.DefaultMaxLen, s.client.XLen(s.ctx, outbox.DefaultStream).Val(), 200)
}
