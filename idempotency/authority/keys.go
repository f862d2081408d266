package authority

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
)

// MaxRequestAge is how old a client attempt may be when it claims its key, by PostgreSQL's clock,
// and how far ahead. No client waits that long, and a refusal is remembered for twice as long, so
// that the clocks of proxy, replica and database may differ by half an hour. Keep every answer
// ([Claim].TTL) for at least an hour, too: it stops the copies of requests that were told of it.
const MaxRequestAge = 30 * time.Minute

const (
	// transactionTimeout bounds a whole transaction from this side, in case PostgreSQL does not
	// answer at all.
	transactionTimeout = 5 * time.Second
	// acquireTimeout bounds the wait for a connection. While PostgreSQL is away requests must fail
	// fast instead of piling up.
	acquireTimeout = 2 * time.Second
	// rollbackTimeout bounds the clean-up after a failure. If it fails, too, the connection is
	// closed, and PostgreSQL rolls back by itself.
	rollbackTimeout = time.Second
)

// DB is what an authority needs of a database. *pgxpool.Pool implements it.
type DB interface {
	Acquire(ctx context.Context) (*pgxpool.Conn, error)
}

// Keys is the authority: a table of idempotency keys. It is safe for concurrent use.
type Keys struct {
	db           DB
	table, scope string
	sql          statements
	lease        time.Duration
	log          *slog.Logger
	http         adapter

	takeovers, overtaken atomic.Int64
}

// Option configures a [Keys].
type Option func(*Keys)

// New returns the authority on the keys of a database, which remains the caller's to close. It
// panics if db is nil.
func New(db DB, opts ...Option) *Keys {
	k := &Keys{db: db, log: slog.Default(), http: adapter{writeError: idempotency.WriteProblem}}
	WithTable(DefaultTable, DefaultScope)(k)
	for _, opt := range opts {
		opt(k)
	}
	if db == nil {
		panic("authority: New needs a database")
	}
	return k
}

// WithTable names the table, for services that share a database, and its column of scopes. The
// defaults are [DefaultTable] and [DefaultScope]. A service that migrates the table by itself may
// choose the type of that column, of resource_id, and further columns with defaults: the scope and
// the ID of what was begun are sent as text, which PostgreSQL reads as what the column is.
//
// WithTable panics unless both names have at most 40 lower-case letters, digits and underscores.
// With a reserved word of SQL, such as order, [Migrate] and all statements fail.
func WithTable(table, scope string) Option {
	for _, name := range []string{table, scope} {
		if !isPlain(name) {
			panic(fmt.Sprintf("authority: WithTable: %q is not a name of at most 40 lower-case letters, digits and underscores", name))
		}
	}
	return func(k *Keys) { k.table, k.scope, k.sql = table, scope, newStatements(table, scope) }
}

// WithLease sets how long an attempt at a provider is left alone before a retry takes the next
// one, unless it said that the outcome is unknown. Set it if no store that all processes share
// keeps their attempts apart: without it, retries overtake attempts that are about to succeed. It
// is about as long as an attempt takes. The default is zero.
func WithLease(d time.Duration) Option {
	return func(k *Keys) { k.lease = d }
}

// WithLogger sets where failures are logged that clients do not see, and what is unknown or held
// at a provider. The default is slog.Default.
func WithLogger(log *slog.Logger) Option {
	return func(k *Keys) { k.log = log }
}

// Counters are what this process did since its start.
type Counters struct {
	// Takeovers are attempts that went on with what an earlier one had begun: it ended, lost its
	// lease, or did not learn the outcome.
	Takeovers int64
	// Overtaken are attempts that knew the outcome and could not settle, because a newer one was
	// running, or it was settled already.
	Overtaken int64
}

// Counters reads the counters.
func (k *Keys) Counters() Counters {
	return Counters{Takeovers: k.takeovers.Load(), Overtaken: k.overtaken.Load()}
}
