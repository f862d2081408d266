package outbox_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// counts are what the servers did.
type counts struct {
	transactions, commands int64
	published              int64 // events
	passes                 int64 // of the relay, each of which publishes its events in one MULTI
}

// counts reads what the servers did when they are idle. A session reports its transactions
// when it ends.
func (s *shop) counts() (c counts) {
	s.t.Helper()
	s.pool.Reset()
	s.await("all other sessions have ended", func() bool {
		return value[int](s.bundle, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == 1
	})
	c.transactions = value[int64](s.bundle, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
	for command, stat := range s.client.InfoMap(s.ctx, "commandstats").Val()["Commandstats"] {
		calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		require.NoError(s.t, err, command)
		c.commands += n
		switch command {
		case "cmdstat_xadd":
			c.published = n
		case "cmdstat_exec":
			c.passes = n
		}
	}
	return c
}

// A pass costs two transactions and one MULTI for the relay, and one transaction, one read and one
// acknowledgement for each group, however many events it has. Passes become rarer as the load grows
// (see pace).
func TestEvents_CostIsBoundedByPasses(t *testing.T) {
	t.Parallel()
	const (
		events, rate   = 1000, 200 // rate is events a second
		eventsPerPass  = 5         // 15 where the machine has time; a pass for each event would be 1
		perSecond      = 8         // upkeep, the lease, and reads that return nothing
		startsAndStops = 20
	)
	s := setupShop(t, testenv.RedisServer(t).URL)
	groups := s.inbox.Subscriptions()
	before, began := s.counts(), time.Now()
	var relays []*outbox.Relay
	var stops []func()
	for _, replica := range []string{"api-1", "api-2"} {
		relay := s.start(outbox.NewRelay(s, s.stream, outbox.RelayConfig{Groups: postgres.ConsumerGroups(), Logger: quiet}))
		relays, stops = append(relays, relay), append(stops, relay.Stop)
		for _, group := range groups {
			consumer := outbox.NewConsumer(s.client, replica, group, outbox.ConsumerConfig{Logger: quiet})
			consumer.Start(s.ctx)
			stops = append(stops, consumer.Stop)
		}
	}
	ticker := time.NewTicker(time.Second / rate)
	defer ticker.Stop()
	for i := range events {
		<-ticker.C
		s.exec(`INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
			VALUES (gen_random_uuid(), $1, 'order.placed', 'order', gen_random_uuid(), '{}')`, s.account)
		relays[i%2].Wake() // half of the orders are committed by the replica without the lease
	}
	for _, stop := range stops {
		stop()
	}
	seconds, after := int64(time.Since(began).Seconds())+1, s.counts()

	passes := after.passes - before.passes
	transactions := after.transactions - before.transactions - events
	commands := after.commands - before.commands - after.published
	t.Logf("%d events in %d s and %d passes: %d transactions and %d commands in the background",
		events, seconds, passes, transactions, commands)
	require.LessOrEqual(t, passes, int64(events/eventsPerPass))
	beside := perSecond*seconds + startsAndStops
	require.LessOrEqual(t, transactions, passes*int64(2+len(groups))+beside)
	require.LessOrEqual(t, commands, passes*int64(2+2*len(groups))+beside)
	require.Greater(t, after.published, int64(events/2))
	require.Greater(t, transactions, passes, "the test counts transactions")
}
