package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	// testTimeout bounds every wait of a test.
	testTimeout = time.Minute
	// tick is how often await asks.
	tick = 5 * time.Millisecond
	// never is a poll interval or a lease that no test lives to see.
	never = time.Hour
)

var quiet = slog.New(slog.DiscardHandler)

// bundle is an outbox on a database of its own.
type bundle struct {
	*postgres.Outbox
	t       *testing.T
	ctx     context.Context
	pool    *pgxpool.Pool
	account uuid.UUID

	mu     sync.Mutex
	relays []*outbox.Relay
}

// wakeAll wakes all relays that are started.
func (b *bundle) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, relay := range b.relays {
		relay.Wake()
	}
}

func setup(t *testing.T) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	pool, err := postgres.Open(context.Background(), postgres.Config{URL: testenv.Postgres(t), MaxConns: 16})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b := &bundle{Outbox: postgres.NewOutbox(pool), t: t, ctx: ctx, pool: pool, account: uuid.New()}
	b.exec("INSERT INTO accounts (id, name) VALUES ($1, 'Test')", b.account)
	b.exec("CREATE TABLE subjects (id uuid PRIMARY KEY, number int NOT NULL)")
	return b
}

// relay makes a relay that is only woken, or run by RunOnce.
func (b *bundle) relay(stream outbox.Stream) *outbox.Relay {
	return outbox.NewRelay(b, stream, outbox.RelayConfig{Poll: never, Lease: never, Logger: quiet})
}

// fast makes a relay that looks and keeps up often.
func (b *bundle) fast(stream outbox.Stream, groups ...outbox.Group) *outbox.Relay {
	return outbox.NewRelay(b, stream, outbox.RelayConfig{Groups: groups, Poll: 10 * time.Millisecond,
		Upkeep: 20 * time.Millisecond, Logger: quiet})
}

// start runs a relay until the test ends.
func (b *bundle) start(relay *outbox.Relay) *outbox.Relay {
	b.mu.Lock()
	b.relays = append(b.relays, relay)
	b.mu.Unlock()
	relay.Start(b.ctx)
	b.t.Cleanup(relay.Stop)
	return relay
}

// pass runs a relay once, and requires that it publishes so many events.
func (b *bundle) pass(relay *outbox.Relay, want int) {
	b.t.Helper()
	published, err := relay.RunOnce(b.ctx)
	require.NoError(b.t, err)
	require.Equal(b.t, want, published)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, sql, args...)
	require.NoError(b.t, err)
}

// value reads one value by SQL.
func value[T any](b *bundle, sql string, args ...any) (v T) {
	b.t.Helper()
	require.NoError(b.t, b.pool.QueryRow(b.ctx, sql, args...).Scan(&v))
	return v
}

func (b *bundle) stats(relay *outbox.Relay) outbox.RelayStats {
	b.t.Helper()
	stats, err := relay.Stats(b.ctx)
	require.NoError(b.t, err)
	return stats
}

func (b *bundle) waiting() int64 {
	b.t.Helper()
	backlog, err := b.Backlog(b.ctx)
	require.NoError(b.t, err)
	return backlog.Waiting
}

// subject makes the row whose lock orders a subject's events.
func (b *bundle) subject() uuid.UUID {
	b.t.Helper()
	id := uuid.New()
	b.exec("INSERT INTO subjects VALUES ($1, 0)", id)
	return id
}

// emitIn writes the next event of a subject, numbered from 1, under the lock of its row.
func (b *bundle) emitIn(tx pgx.Tx, subject uuid.UUID) error {
	var number int
	err := tx.QueryRow(b.ctx, "UPDATE subjects SET number = number + 1 WHERE id = $1 RETURNING number", subject).Scan(&number)
	if err != nil {
		return err
	}
	_, err = tx.Exec(b.ctx, `INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
		VALUES ($1, $2, 'test.happened', 'test', $3, jsonb_build_object('number', $4::int))`, uuid.New(), b.account, subject, number)
	return err
}

// emit commits so many events of a subject, one by one, without waking anybody.
func (b *bundle) emit(subject uuid.UUID, n int) {
	b.t.Helper()
	for range n {
		require.NoError(b.t, pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error { return b.emitIn(tx, subject) }))
	}
}

// begin starts a transaction that ends with the test, unless it has ended before.
func (b *bundle) begin() pgx.Tx {
	b.t.Helper()
	tx, err := b.pool.Begin(b.ctx)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(b.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0") // however busy the machine is
	require.NoError(b.t, err)
	return tx
}

// await waits until the condition holds.
func (b *bundle) await(what string, holds func() bool) {
	b.t.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-b.ctx.Done():
			require.FailNow(b.t, "waited in vain", "until %s", what)
		case <-ticker.C:
		}
	}
}

// numberOf reads the number of a test event.
func numberOf(event outbox.Event) int {
	var data struct{ Number int }
	if err := json.Unmarshal(event.Data, &data); err != nil {
		panic(fmt.Errorf("decode %s: %w", event.Data, err))
	}
	return data.Number
}

// recorder is a stream that remembers, and does before what it is told to. It has room for all.
type recorder struct {
	before func([]outbox.Event) error

	mu     sync.Mutex
	events []outbox.Event
}

func (r *recorder) Publish(_ context.Context, events []outbox.Event) error {
	if r.before != nil {
		if err := r.before(events); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, events...)
	return nil
}

func (*recorder) State(context.Context) (outbox.StreamState, error) { return outbox.StreamState{}, nil }

func (*recorder) Trim(context.Context, outbox.EntryID, int64) error { return nil }

func (r *recorder) published() []outbox.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// numbers are the numbers of a subject's events in the order of publishing.
func (r *recorder) numbers(subject uuid.UUID) (numbers []int) {
	for _, event := range r.published() {
		if event.Subject == subject {
			numbers = append(numbers, numberOf(event))
		}
	}
	return numbers
}

// firsts leaves only the first appearance of each number.
func firsts(numbers []int) (result []int) {
	for _, n := range numbers {
		if !slices.Contains(result, n) {
			result = append(result, n)
		}
	}
	return result
}

func upTo(n int) (numbers []int) {
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// open makes a client of a Redis.
func open(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	options, err := redisstore.Options(url)
	require.NoError(t, err)
	outbox.SetTimeouts(options)
	client := redisstore.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
