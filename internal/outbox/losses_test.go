package outbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// running is a seller with relays and consumers, and a Redis of its own.
func running(t *testing.T) (*seller, *testenv.Server) {
	t.Helper()
	server := testenv.RedisServer(t)
	s := setupShop(t, server.URL).seller()
	for range 2 {
		s.start(s.fast(s.stream, postgres.ConsumerGroups()...))
	}
	return s, server
}

// effective waits until that many orders have had both their effects and nothing is left to do, and
// requires that they had them once.
func (s *seller) effective(orders int) {
	s.t.Helper()
	s.awaitEffects(orders)
	for _, group := range postgres.ConsumerGroups() {
		s.await("the group's cursor is at the end", func() bool {
			return value[bool](s.bundle, `SELECT c.position = (SELECT max(id) FROM outbox) FROM consumer_cursors c WHERE consumer = $1`, group.Name)
		})
	}
	s.requireOnce(orders)
}

func TestEvents_ComeBackWhenRedisIsRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	s, server := running(t)
	s.startConsumers("api-1")
	s.startConsumers("api-2")
	const rounds, orders = 3, 50
	for range rounds { // Redis keeps nothing over a restart
		before := value[int](s.bundle, "SELECT count(*) FROM outbox")
		sold := make(chan struct{})
		go func() {
			defer close(sold)
			s.sell(orders)
		}()
		s.await("some more is sold", func() bool {
			return value[int](s.bundle, "SELECT count(*) FROM outbox") > before
		})
		server.Stop()
		server.Start()
		<-sold
	}
	s.effective(rounds * orders)
}

func TestEvents_ComeBackWhenRedisIsFlushed(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	stop := s.startConsumers("api-1")
	s.sell(10)
	s.effective(10)
	stop()
	s.sell(10) // published, and not consumed
	s.await("all is published", func() bool { return s.waiting() == 0 })
	require.NoError(t, s.client.FlushDB(s.ctx).Err())
	s.sell(5)
	s.startConsumers("api-1")
	s.effective(25)
}

// TestEvents_WaitWhileTheStreamIsSomethingElse: somebody has written another value to its key.
func TestEvents_WaitWhileTheStreamIsSomethingElse(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.startConsumers("api-1")
	s.sell(5)
	s.effective(5)
	require.NoError(t, s.client.Set(s.ctx, outbox.DefaultStream, "x", 0).Err())
	s.sell(5)
	_, err := s.stream.State(s.ctx)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Positive(t, s.waiting())
	require.NoError(t, s.client.Del(s.ctx, outbox.DefaultStream).Err())
	s.effective(10)
}

func TestEvents_ComeBackWhenRedisIsFlushedWhileTheInboxIsLocked(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.startConsumers("api-1")
	s.sell(1)
	s.effective(1)
	tx := s.begin()
	_, err := tx.Exec(s.ctx, "LOCK TABLE inbox IN SHARE MODE")
	require.NoError(t, err)
	s.sell(1)
	s.await("all is published", func() bool { return s.waiting() == 0 })
	s.await("the event is taken", func() bool { return s.pending(confirmations) == 1 })
	require.NoError(t, s.client.FlushDB(s.ctx).Err())
	require.NoError(t, tx.Rollback(s.ctx))
	s.effective(2)
}

func TestEvents_ComeBackWhenTheStreamWasTrimmedBeforeAConsumer(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.sell(20)
	s.await("all is published", func() bool { return s.waiting() == 0 })
	require.NoError(t, s.client.XTrimMaxLen(s.ctx, outbox.DefaultStream, 3).Err())
	s.startConsumers("api-1")
	s.effective(20)
}

// An event that is lost must come back although the group is busy with others all the time.
func TestEvents_ComeBackUnderLoad(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.sell(1)
	s.await("all is published", func() bool { return s.waiting() == 0 })
	require.NoError(t, s.client.XTrimMaxLen(s.ctx, outbox.DefaultStream, 0).Err())
	s.startConsumers("api-1")
	sold := 1
	s.await("the first order is confirmed", func() bool {
		s.sell(1)
		sold++
		_, confirmed, _, _ := s.effects()
		return confirmed > 0 && value[bool](s.bundle, `SELECT EXISTS (SELECT FROM order_confirmations JOIN orders ON orders.id = order_id
			WHERE orders.created_at = (SELECT min(created_at) FROM orders))`)
	})
	s.effective(sold)
}

func TestEvents_HaveNoSecondEffectWhenAGroupIsMadeAnewAndTheInboxIsPurged(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	stop := s.startConsumers("api-1")
	s.sell(10)
	s.effective(10)
	stop()
	s.exec("UPDATE consumer_cursors SET purgeable = position") // as it is two minutes later
	purged, err := s.store.PurgeInbox(s.ctx, 0, 100)
	require.NoError(t, err)
	require.Equal(t, 30, purged, "of three groups")
	for _, group := range postgres.ConsumerGroups() {
		require.NoError(t, s.client.XGroupDestroy(s.ctx, outbox.DefaultStream, group.Name).Err())
	}
	s.startConsumers("api-1") // reads the stream from its beginning
	s.sell(1)
	s.effective(11)
}

func TestEvents_AreNotPublishedAgainWhileAConsumerIsOnlyBehind(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL).seller()
	require.NoError(t, s.client.XGroupCreateMkStream(s.ctx, outbox.DefaultStream, confirmations, "0").Err())
	s.sell(5)
	relay := s.relayOf(confirmations)
	for range 3 {
		relay.Upkeep()
		_, err := relay.RunOnce(s.ctx)
		require.NoError(t, err)
	}
	require.Zero(t, s.stats(relay).Republished)
	require.EqualValues(t, 5, s.stats(relay).Lags[confirmations].Events)
	require.Positive(t, s.stats(relay).Lags[confirmations].Oldest)
}

// relayOf makes a relay that is run by RunOnce and knows one group alone.
func (s *shop) relayOf(group string) *outbox.Relay {
	return outbox.NewRelay(s, s.stream, outbox.RelayConfig{Groups: []outbox.Group{s.subscription(group).Group},
		Poll: never, Lease: never, MaxLen: 1000, Logger: quiet})
}

func TestStream_IsTrimmedOnlyWhereEveryGroupHasAcknowledged(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL)
	subject := s.subject()
	s.emit(subject, 900)
	relay := s.relayOf(confirmations)
	length := func() int64 {
		relay.Upkeep()
		_, err := relay.RunOnce(s.ctx)
		require.NoError(t, err)
		relay.Upkeep()
		_, err = relay.RunOnce(s.ctx)
		require.NoError(t, err)
		return s.client.XLen(s.ctx, outbox.DefaultStream).Val()
	}
	require.EqualValues(t, 900, length(), "the group is not there yet")
	for _, group := range []string{confirmations, "of-another-service"} {
		require.NoError(t, s.client.XGroupCreate(s.ctx, outbox.DefaultStream, group, "0").Err())
	}
	read := func(group string) []string {
		streams, err := s.client.XReadGroup(s.ctx, &redis.XReadGroupArgs{Group: group, Consumer: "c",
			Streams: []string{outbox.DefaultStream, ">"}, Count: 1000}).Result()
		require.NoError(t, err)
		var ids []string
		for _, m := range streams[0].Messages {
			ids = append(ids, m.ID)
		}
		return ids
	}
	ids := read(confirmations)
	require.NoError(t, s.client.XAck(s.ctx, outbox.DefaultStream, confirmations, ids...).Err())
	require.EqualValues(t, 900, length(), "another group has had nothing")
	ids = read("of-another-service")
	require.NoError(t, s.client.XAck(s.ctx, outbox.DefaultStream, "of-another-service", ids[300:]...).Err())
	require.EqualValues(t, 900, length(), "its first entries are pending")
	require.NoError(t, s.client.XAck(s.ctx, outbox.DefaultStream, "of-another-service", ids[:300]...).Err())
	require.InDelta(t, 500, length(), 100, "Redis trims whole nodes of a hundred entries")
}

func TestRelay_PausesWhenTheStreamIsFull(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL)
	relay := s.relayOf(confirmations)
	s.emit(s.subject(), 1)
	s.exec(`INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
		SELECT gen_random_uuid(), $1, 'test.happened', 'test', gen_random_uuid(), '{}' FROM generate_series(1, 1499)`, s.account)
	s.pass(relay, 1000)
	s.pass(relay, 0)
	relay.Upkeep()
	s.pass(relay, 0)
	require.EqualValues(t, 500, s.waiting())
	require.NoError(t, s.client.XTrimMaxLen(s.ctx, outbox.DefaultStream, 0).Err())
	relay.Upkeep()
	s.pass(relay, 500)
}

func TestDeadLetter_HoldsUpNoOtherEvent(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.exec("ALTER TABLE order_confirmations ADD CONSTRAINT poisoned CHECK (order_id <> '00000000-0000-0000-0000-000000000000')")
	s.exec(`INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
		VALUES (gen_random_uuid(), $1, 'order.placed', 'order', '00000000-0000-0000-0000-000000000000', '{}')`, s.account)
	s.startConsumers("api-1")
	s.sell(10)
	s.effective(10) // the cursor passes the dead letter

	s.await("it was tried again", func() bool { return value[int](s.bundle, "SELECT max(attempts) FROM dead_letters") >= 2 })
	refused := func() (retrying, dead int64) {
		lag, err := s.Lag(s.ctx, s.subscription(confirmations).Group)
		require.NoError(t, err)
		return lag.Retrying, lag.Dead
	}
	retrying, dead := refused()
	require.Equal(t, [2]int64{1, 0}, [2]int64{retrying, dead}, "it is still tried again")
	s.exec("UPDATE dead_letters SET attempts = $1", outbox.MaxAttempts-1)
	s.exec("UPDATE dead_letters SET retry_at = now()")
	s.await("it is dead", func() bool {
		return value[int](s.bundle, "SELECT count(*) FROM dead_letters WHERE retry_at IS NULL") == 1
	})
	retrying, dead = refused()
	require.Equal(t, [2]int64{0, 1}, [2]int64{retrying, dead})
	position := value[int64](s.bundle, "SELECT position FROM dead_letters")
	var list strings.Builder
	require.NoError(t, outbox.List(s.ctx, s, &list, 2))
	require.Regexp(t, fmt.Sprintf(`(?m)^%d +order-confirmations +order\.placed +0{8}-\S+ +\d+s +10 +never +".*poisoned`, position), list.String())
	purged, err := s.store.PurgeEvents(s.ctx, 0, 1000)
	require.NoError(t, err)
	require.Positive(t, purged)
	require.Equal(t, 1, value[int](s.bundle, "SELECT count(*) FROM outbox"), "a dead letter is kept")

	s.exec("ALTER TABLE order_confirmations DROP CONSTRAINT poisoned") // an operator removes the cause
	var said strings.Builder
	require.ErrorContains(t, outbox.Retry(s.ctx, s, &said, position, position+1), fmt.Sprintf("no group refused an event at [%d]", position+1))
	require.Equal(t, "1 events will be tried again\n", said.String(), "the other one is")
	s.await("it has its effect", func() bool {
		return value[int](s.bundle, "SELECT count(*) FROM order_confirmations WHERE type = 'order.placed'") == 11
	})
	require.Zero(t, value[int](s.bundle, "SELECT count(*) FROM dead_letters"))
	list.Reset()
	require.NoError(t, outbox.List(s.ctx, s, &list, 2))
	require.Equal(t, "no event is refused\n", list.String())
}

func TestStatus_SaysHowFarEventsHaveCome(t *testing.T) {
	t.Parallel()
	s, _ := running(t)
	s.sell(2)
	s.await("all is published", func() bool { return s.waiting() == 0 })
	var status strings.Builder
	require.NoError(t, outbox.Status(s.ctx, s, postgres.ConsumerGroups(), &status))
	require.Regexp(t, `(?m)^published +6 +0 +0s`, status.String())
	require.Regexp(t, `(?m)^order-confirmations +\d +2 +\ds +0 +0$`, status.String())
}

func TestConsumer_NoticesThatTheStreamIsGone(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL)
	s.startConsumers("api-1")
	s.await("all consumers wait for events", func() bool { return s.blocked() == 3 })
	require.NoError(t, s.client.FlushDB(s.ctx).Err())
	event := s.orderPlaced()
	s.publish(event)
	s.await("the event is handled", func() bool { return s.confirmations(event) == 1 })
}
