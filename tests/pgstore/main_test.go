package pgstore_test

import (
	"context"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// open makes a pool whose statements can be counted.
func open(t testing.TB, server string) (*pgxpool.Pool, *wire) {
	t.Helper()
	config, err := pgxpool.ParseConfig(server)
	require.NoError(t, err)
	w := &wire{}
	config.ConnConfig.Tracer = w
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, w
}

// newStore makes a store for tests that are not about its timeout. A busy machine may need
// longer than pgstore.AttemptTimeout to open a connection.
func newStore(db pgstore.DB, opts ...pgstore.Option) *pgstore.Store {
	return pgstore.New(db, append([]pgstore.Option{pgstore.WithAttemptTimeout(patience)}, opts...)...)
}

// through starts a proxy in front of a server, and returns it with the server's
// URL by that way.
func through(t testing.TB, server string) (way *testenv.Proxy, detour string) {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	way = testenv.NewProxy(t, u.Host)
	u.Host = way.Addr
	return way, u.String()
}

// wire counts the statements that go out.
type wire struct {
	mu   sync.Mutex
	seen int
}

func (w *wire) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	return ctx
}

func (w *wire) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *wire) drain() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = 0
	return seen
}
