package authority

import (
	"context"
	"embed"
	"fmt"
	"strings"
)

// Migrations are SQL files, in order: of [DefaultTable] with the column [DefaultScope]. Copy them
// into the migrations of a service that has some. A later release adds files, and changes none.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// migrationLock is the key of the advisory lock that [Migrate] takes: CREATE TABLE IF NOT EXISTS
// fails if two sessions run it at once. Any number that is not used elsewhere is right.
const migrationLock = 7_203_117_042_118_542

// Migrate runs [Migrations], for services without migrations of their own. Several replicas may
// call it at once, and at every start. Use the same table as for [New].
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	k := New(db, opts...)
	conn, err := k.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	sql := []string{fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)}
	files, err := Migrations.ReadDir("migrations")
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	for _, file := range files {
		text, err := Migrations.ReadFile("migrations/" + file.Name())
		if err != nil {
			return fmt.Errorf("read the migrations: %w", err)
		}
		sql = append(sql, strings.ReplaceAll(string(text), DefaultTable, k.table))
	}
	if _, err := conn.Exec(ctx, strings.Join(sql, ";\n")); err != nil { // without arguments this is one transaction
		return fmt.Errorf("create table %s: %w", k.table, unavailable(err))
	}
	return nil
}
