package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// The time limits form a ladder, so that the inner one fires first and names the cause.
const (
	// acquireTimeout bounds the wait for a connection. When the database is away requests must fail
	// fast instead of piling up.
	acquireTimeout = 2 * time.Second

	// idleInTransactionTimeout ends the session of a client that stopped between two statements of
	// a transaction, so that a paused replica does not hold row locks. The decisions in between
	// take microseconds.
	idleInTransactionTimeout = 2 * time.Second

	// lockTimeout is longer than idleInTransactionTimeout, so a transaction that waits for a paused
	// replica's lock gets it.
	lockTimeout = 3 * time.Second

	// statementTimeout bounds what a statement does besides waiting for a lock.
	statementTimeout = 4 * time.Second

	// transactionTimeout bounds a whole transaction from the replica's side, in case the database
	// does not answer at all.
	transactionTimeout = 5 * time.Second

	// pingTimeout bounds the liveness check that the pool makes before it hands out a connection
	// that was idle for more than a second.
	pingTimeout = time.Second
)

// Config says which database to use.
type Config struct {
	URL      string          // postgres://user:password@host:port/database?option=value
	MaxConns int32           // of this process; zero leaves the choice to the pool
	Tracer   pgx.QueryTracer // traces queries, and what else it has methods for; may be nil

	// FollowTimeline is called with the timeline of a connection when it is not that of the
	// connection before, and BeginTimeline when it is a new one, by the first process that meets
	// it: before anything is read or written there. Both may be nil, must not block, and may be
	// called by several goroutines.
	FollowTimeline func(Timeline)
	BeginTimeline  func(Beginning)
}

// Open makes a pool of connections. It does not connect yet, so it succeeds while the database is
// away; the pool's Ping reports whether it answers.
func Open(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	if cfg.MaxConns > 0 {
		config.MaxConns = cfg.MaxConns
	}
	config.PingTimeout = pingTimeout
	config.ConnConfig.ConnectTimeout = acquireTimeout
	timeline := &timelines{follow: cfg.FollowTimeline, begin: cfg.BeginTimeline}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerTypes(conn)
		return timeline.afterConnect(ctx, conn)
	}
	config.BeforeConnect = cancelNothing
	config.ConnConfig.Tracer = cfg.Tracer
	config.ConnConfig.RuntimeParams["application_name"] = "oncepay"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make the connection pool: %w", err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// registerTypes makes timestamps come out in UTC and not in the zone of whatever machine the
// replica runs on, because answers are kept as they are. UUIDs are sent as they are, and not by way
// of a string ([database/sql/driver.Valuer]), which takes ten times as long.
func registerTypes(conn *pgx.Conn) {
	pgxuuid.Register(conn.TypeMap())
	conn.TypeMap().RegisterDefaultPgType([]uuid.UUID{}, "_uuid") // for query modes that do not ask the server for types
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
}

// errNotCancelled ends the attempt to cancel a statement.
var errNotCancelled = errors.New("statements are not cancelled: the server's own time limits end them")

// cancelNothing keeps the driver from asking the server to cancel what a connection that it gives
// up is doing. Such a request ends a commit's wait for its synchronous standby, too, and makes
// visible what the standby does not have (PostgreSQL manual, "Synchronous Replication"). The driver
// dials once for a connection's server, and again only to cancel.
func cancelNothing(_ context.Context, config *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial, after := config.DialFunc, config.Config.AfterConnect
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNotCancelled
		}
		return dial(ctx, network, addr)
	}
	config.Config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		connected.Store(true)
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
	return nil
}
