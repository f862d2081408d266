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

// What two replicas do for events in the background is bounded by the time that passes, and not by
// the number of events: at 100 orders a second, half a transaction and two commands per order.
const (
	transactionsPerSecond = 50
	commandsPerSecond     = 100 // beside one XADD per event
)

// counts are what the servers did.
type counts struct{ transactions, commands int64 }

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
	}
	return c
}

func TestEvents_CostIsBoundedByTime(t *testing.T) {
	t.Parallel()
	const rate, events = 100, 500
	s := setupShop(t, testenv.RedisServer(t).URL)
	before, began := s.counts(), time.Now()
	var relays []*outbox.Relay
	var stops []func()
	for _, replica := range []string{"api-1", "api-2"} {
		relay := s.start(outbox.NewRelay(s, s.stream, outbox.RelayConfig{Groups: postgres.ConsumerGroups(), Logger: quiet}))
		relays, stops = append(relays, relay), append(stops, relay.Stop, s.startConsumers(replica))
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
	seconds, after := time.Since(began).Seconds(), s.counts()

	transactions := float64(after.transactions-before.transactions) - events
	commands := float64(after.commands-before.commands) - events
	t.Logf("%d events in %.1f s: %.0f transactions and %.0f commands in the background; per event %.2f and %.2f",
		events, seconds, transactions, commands, transactions/events, commands/events)
	require.Less(t, transactions, transactionsPerSecond*seconds)
	require.Less(t, commands, commandsPerSecond*seconds)
	require.Greater(t, commands, seconds, "the test counts commands")
	require.Greater(t, transactions, seconds, "the test counts transactions")
}
