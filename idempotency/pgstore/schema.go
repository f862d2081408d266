package pgstore

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// DefaultTable is the name of the table; [WithTable] replaces it.
const DefaultTable = "idempotency_records"

// Schema creates the table and its index unless they are there. It is one file
// of statements, to be copied into the migrations of a service that has them.
//
//go:embed schema.sql
var Schema string

// migrationLock is the key of the advisory lock that creating takes: CREATE
// TABLE IF NOT EXISTS fails when two sessions run it at once. Any number will
// do that nobody else uses.
const migrationLock = 7_203_117_042_118_541

// Migrate runs [Schema], for services without migrations of their own. It may
// be called by several replicas at once and at every start. Options are those
// that the store is made with.
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	s := New(db, opts...)
	sql := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\n%s", migrationLock, s.named(Schema))
	if _, err := db.Exec(ctx, sql); err != nil { // several statements without arguments are one transaction
		return fmt.Errorf("create table %s: %w", s.table, translate(err))
	}
	return nil
}

// tableName is what needs no quotes, and leaves room for the suffixes of
// indexes and constraints in PostgreSQL's 63 characters.
var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// named puts the table's name into a statement, and into what is named after it.
func (s *Store) named(sql string) string { return strings.ReplaceAll(sql, DefaultTable, s.table) }
