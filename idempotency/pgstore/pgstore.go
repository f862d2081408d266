// Package pgstore keeps idempotency records in PostgreSQL 13 or later, shared by
// all instances of a service, for services that have no Redis. Each step is one
// statement and, in the ordinary course, one round trip; replays and conflicts
// write nothing.
//
//	pool, err := pgxpool.New(ctx, url)
//	err = pgstore.Migrate(ctx, pool) // or Schema among your migrations
//	store := pgstore.New(pool)
//	sweeper := pgstore.NewSweeper(store)
//	sweeper.Start()
//	defer sweeper.Stop()
//
// Leases are measured by the database's clock alone, so that replicas whose
// clocks are off agree on who holds a key. The store's writes are not part of
// the handler's transaction: they begin before it and end after it.
//
// Those who wait for a key ([idempotency.Policy].Wait) are woken by NOTIFY,
// through one connection that is opened when the first of them comes; see
// [Store.Close].
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

// AttemptTimeout bounds one attempt at a step, the wait for a connection
// included: a hundred times what a statement takes, while an attempt and its
// repetition stay under the middleware's two seconds.
const AttemptTimeout = 750 * time.Millisecond

// DB is what the store needs of a database. *pgxpool.Pool is one.
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
	listener
}

var (
	_ idempotency.Store    = (*Store)(nil)
	_ idempotency.Notifier = (*Store)(nil)
)

// Option configures a [Store].
type Option func(*Store)

// WithTable replaces [DefaultTable], for services that share a database. The
// table is looked up in the connection's search_path. A name that isn't plain
// (lower-case letters, digits and underscores, 40 at most) panics.
func WithTable(name string) Option {
	if !tableName.MatchString(name) {
		panic(fmt.Sprintf("pgstore: %q is no plain table name", name))
	}
	return func(s *Store) { s.table = name }
}

// WithAttemptTimeout replaces [AttemptTimeout].
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *Store) { s.timeout = d }
}

// WithoutNotify has no changes notified. PostgreSQL commits transactions that
// notify one after the other, in all databases of the server: at thousands of
// requests a second that is felt. It also suits pools in front of the server
// that can't LISTEN. Those who wait for a key then look every second or so.
func WithoutNotify() Option {
	return func(s *Store) { s.quiet = true }
}

// New makes a store on a pool, which stays the caller's to close.
func New(db DB, opts ...Option) *Store {
	s := &Store{db: db, table: DefaultTable, timeout: AttemptTimeout, listener: listener{checkEvery: checkEvery}}
	for _, opt := range opts {
		opt(s)
	}
	s.sql = s.statements()
	return s
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	var met *idempotency.Record
	err := s.repeated(ctx, func(ctx context.Context) (err error) {
		for met == nil && err == nil { // until it is ours, or somebody else's to see
			met, err = s.claim(ctx, pending, lease)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", translate(err))
	}
	if met.Owner == pending.Owner && met.Status == idempotency.StatusInProgress {
		return nil, nil // just now, or by our own first attempt, whose reply was lost
	}
	return met, nil
}

// claim gives the record that is there afterwards, or nil when another one
// appeared while the statement ran, which this statement can't see yet but the
// next one can.
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
	headers, body, err := encode(done.Response)
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	return s.change(ctx, "complete", done, func(now standing) bool { return now == finishedByUs },
		s.sql.complete, done.Scope, done.Key, string(done.Owner), atLeastMicrosecond(ttl), string(done.Status),
		done.Response.StatusCode, headers, body, done.Response.BodyOmitted, done.TraceParent,
		s.notice(done))
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, pending idempotency.Record) error {
	return s.change(ctx, "release", pending, func(now standing) bool { return now == absent },
		s.sql.release, pending.Scope, pending.Key, string(pending.Owner), s.notice(pending))
}

// notice is what those who wait are told, or "" if they aren't.
func (s *Store) notice(r idempotency.Record) string {
	if s.quiet {
		return ""
	}
	return nameOf(r.Scope, r.Key)
}

// standing is what a record is to an owner that doesn't hold it.
type standing int

const (
	notOurs standing = iota
	absent
	finishedByUs
)

// change runs a statement on the record that its owner holds. If there is none,
// a second look, which sees what the statement had to wait for, tells whether
// all is well nevertheless.
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

// atLeastMicrosecond is PostgreSQL's resolution; no expiry may round down to
// none.
func atLeastMicrosecond(d time.Duration) time.Duration { return max(d, time.Microsecond) }
