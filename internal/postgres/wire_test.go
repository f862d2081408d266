package postgres

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// wire is what a pool's connections go over. It counts round trips, and can cut the connection
// before or after one of them.
type wire struct {
	mu    sync.Mutex
	trips int
	cutAt int  // the number of the round trip; 0 is none
	after bool // the database gets it and answers, but the answer is lost
}

// measure runs f and returns the round trips it took.
func (w *wire) measure(f func()) int {
	w.mu.Lock()
	w.trips = 0
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trips
}

// cut arms the next cut.
func (w *wire) cut(trip int, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trips, w.cutAt, w.after = 0, trip, after
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &wiredConn{Conn: conn, wire: w, heard: true}, err
}

// wiredConn is one connection on a wire.
type wiredConn struct {
	net.Conn
	wire  *wire
	heard bool // the last thing that happened was that the database answered
}

func (c *wiredConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	if c.heard {
		c.heard = false
		c.wire.trips++
	}
	cut := c.wire.cutAt == c.wire.trips && !c.wire.after && c.wire.cutAt > 0
	if cut {
		c.wire.cutAt = 0
	}
	c.wire.mu.Unlock()
	if cut {
		_ = c.Close()
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}

func (c *wiredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if n > 0 {
		c.heard = true
	}
	if n > 0 && c.wire.after && c.wire.cutAt == c.wire.trips && c.wire.cutAt > 0 {
		c.wire.cutAt = 0
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// wired is a second store on the bundle's database, with one connection over a wire.
func (b *bundle) wired() (*Store, *wire) {
	b.t.Helper()
	w := &wire{}
	config := b.pool.Config()
	config.MaxConns = 1
	config.ConnConfig.DialFunc = w.dial
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pool, err := pgxpool.NewWithConfig(b.ctx, config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return NewStore(pool, Options{}), w
}

func TestWire_CountsRoundTrips(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store, w := b.wired()
	require.NoError(t, store.pool.Ping(b.ctx))
	require.Equal(t, 3, w.measure(func() {
		for range 3 {
			require.NoError(t, store.pool.Ping(b.ctx))
		}
	}))
	w.cut(1, false)
	require.Error(t, store.pool.Ping(b.ctx))
}
