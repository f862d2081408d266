// Package pgstore keeps idempotency records in PostgreSQL 13 or later, shared by all instances
// of a service, for services without Redis. Each step is one statement and normally one round
// trip; replays and conflicts write nothing.
//
//	pool, err := pgxpool.New(ctx, url)
//	err = pgstore.Migrate(ctx, pool) // or Schema among your migrations
//	store := pgstore.New(pool)
//	sweeper := pgstore.NewSweeper(store)
//	sweeper.Start()
//	defer sweeper.Stop()
//
// Leases are measured only by the database's clock, so that replicas whose clocks differ agree
// on who holds a key. The store's writes are not part of the handler's transaction: they come
// before and after it.
//
// Waiters ([idempotency.Policy].Wait) are woken by NOTIFY, over one connection that is opened for
// the first of them; see [Store.Close]. A notification is sent after the step that it is about, in
// the background and together with others, and may be lost: waiters look by themselves, too.
//
// Behind PgBouncer in transaction mode, add default_query_exec_mode=cache_describe (or exec, or
// simple_protocol) to the URL. NOTIFY reaches nobody there.
package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
)

// AttemptTimeout limits one attempt at a step, including the wait for a connection. It is a
// hundred times what a statement takes, and an attempt and its repetition stay within the
// middleware's two seconds.
const AttemptTimeout = 750 * time.Millisecond

// DB is what the store needs of a database. *pgxpool.Pool implements it.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Acquire(ctx context.Context) (*pgxpool.Conn, error) // for a connection to listen on
}

// Store is an [idempotency.Store]. It is safe for concurrent use.
type Store struct {
	db      DB
	table   string
	timeout time.Duration
	quiet   bool
	sql     statements
	notices
	listener
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.Watcher = (*Store)(nil)
)

// Option configures a [Store].
type Option func(*Store)

// WithTable sets the name of the table, for services that share a database. The default is
// [DefaultTable]. The table is looked up in the connection's search_path. WithTable panics
// unless the name has at most 40 lower-case letters, digits and underscores.
func WithTable(name string) Option {
	if !tableName.MatchString(name) {
		panic(fmt.Sprintf("pgstore: %q is not a plain table name", name))
	}
	return func(s *Store) { s.table = name }
}

// WithAttemptTimeout sets the limit of one attempt. The default is [AttemptTimeout].
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *Store) { s.timeout = d }
}

// WithoutNotify turns notifications off, and with them one more statement for each request that is
// executed; under load, for several of them. Connection pools in front of the server may not
// support LISTEN, either. Waiters then look about once a second.
func WithoutNotify() Option {
	return func(s *Store) { s.quiet = true }
}

// WithPingInterval sets how long the listening connection waits for a
// notification before it pings the server. The default is 15 s.
func WithPingInterval(d time.Duration) Option {
	return func(s *Store) { s.pingInterval = d }
}

// New returns a store that uses db. The caller closes db. New panics if db is nil or a
// duration is not positive.
func New(db DB, opts ...Option) *Store {
	s := &Store{db: db, table: DefaultTable, timeout: AttemptTimeout, listener: listener{pingInterval: pingInterval}}
	for _, opt := range opts {
		opt(s)
	}
	if db == nil || s.timeout <= 0 || s.pingInterval <= 0 {
		panic(fmt.Sprintf("pgstore: db %v, attempt timeout %s, ping interval %s", db, s.timeout, s.pingInterval))
	}
	s.sql = s.statements()
	return s
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	var met *idempotency.Record
	err := s.repeated(ctx, func(ctx context.Context) (err error) {
		for met == nil && err == nil { // until it is ours, or another owner's record is visible
			met, err = s.claim(ctx, pending, lease)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", translate(err))
	}
	if met.Owner == pending.Owner && met.Status == idempotency.StatusInProgress {
		return nil, nil // just now, or since an earlier attempt whose reply was lost
	}
	return met, nil
}

// claim returns the record that is there afterwards. It returns nil if another one appeared
// while the statement ran: only the next statement sees it.
func (s *Store) claim(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	rows, err := s.db.Query(ctx, s.sql.acquire, pending.Scope, pending.Key, pending.Fingerprint[:], string(pending.Owner),
		pending.CreatedAt, atLeastMicrosecond(lease), pending.TraceParent)
	if err != nil {
		return nil, err
	}
	records, err := pgx.CollectRows(rows, scanRecord)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	met := &records[0]
	met.Scope, met.Key = pending.Scope, pending.Key
	return met, nil
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, pending idempotency.Record, lease time.Duration) error {
	return s.change(ctx, "extend", pending, func(standing) bool { return false },
		s.sql.extend, pending.Scope, pending.Key, string(pending.Owner), atLeastMicrosecond(lease))
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	headers, body := encode(done.Response)
	err := s.change(ctx, "complete", done, func(now standing) bool { return now == finishedByUs },
		s.sql.complete, done.Scope, done.Key, string(done.Owner), atLeastMicrosecond(ttl), string(done.Status),
		done.Response.StatusCode, headers, body, done.Response.BodyOmitted, done.TraceParent)
	if err == nil {
		s.notify(done)
	}
	return err
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, pending idempotency.Record) error {
	err := s.change(ctx, "release", pending, func(now standing) bool { return now == absent },
		s.sql.release, pending.Scope, pending.Key, string(pending.Owner))
	if err == nil {
		s.notify(pending)
	}
	return err
}

// standing is what a record is for an owner that does not hold it.
type standing int

const (
	notOurs standing = iota
	absent
	finishedByUs
)

// change runs a statement on the record that its owner holds. If there is none, a second
// statement, which sees what the first one waited for, decides whether that is an error.
func (s *Store) change(ctx context.Context, name string, r idempotency.Record, well func(standing) bool, sql string, args ...any) error {
	err := s.repeated(ctx, func(ctx context.Context) error {
		tag, err := s.db.Exec(ctx, sql, args...)
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		now, err := s.look(ctx, r)
		if err == nil && !well(now) {
			err = idempotency.ErrLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, translate(err))
	}
	return nil
}

func (s *Store) look(ctx context.Context, r idempotency.Record) (standing, error) {
	rows, err := s.db.Query(ctx, s.sql.look, r.Scope, r.Key, string(r.Owner))
	if err != nil {
		return notOurs, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	switch {
	case err != nil:
		return notOurs, err
	case len(found) == 0:
		return absent, nil
	case found[0]:
		return finishedByUs, nil
	}
	return notOurs, nil
}

// atLeastMicrosecond is PostgreSQL's resolution: a duration must not become zero.
func atLeastMicrosecond(d time.Duration) time.Duration { return max(d, time.Microsecond) }
