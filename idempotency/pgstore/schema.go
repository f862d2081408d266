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

// Schema creates the table and its index unless they exist. Copy it into the migrations of a
// service that has some.
//
//go:embed schema.sql
var Schema string

// migrationLock is the key of the advisory lock that [Migrate] takes: CREATE TABLE IF NOT EXISTS
// fails if two sessions run it at once. Any number that is not used elsewhere is right.
const migrationLock = 7_203_117_042_118_541

// Migrate runs [Schema], for services without migrations of their own. Several replicas may call
// it at once and at every start. Use the same options as for the store.
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	s := New(db, opts...)
	sql := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\n%s", migrationLock, s.named(Schema))
	if _, err := db.Exec(ctx, sql); err != nil { // several statements without arguments are one transaction
		return fmt.Errorf("create table %s: %w", s.table, translate(err))
	}
	return nil
}

// tableName matches names that need no quotes, and leave room for the suffixes of indexes and
// constraints within PostgreSQL's 63 characters.
var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// named replaces the table's name in a statement, also as a part of other names.
func (s *Store) named(sql string) string { return strings.ReplaceAll(sql, DefaultTable, s.table) }
