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
//go:embed migrations/*.up.sql
var Migrations embed.FS

// migrationLock is the key of the advisory lock that [Migrate] takes: CREATE TABLE IF NOT EXISTS
// fails if two sessions run it at once. Any number that is not used elsewhere is right.
const migrationLock = 7_203_117_042_118_542

// defaultScopeType is the type of [DefaultScope].
const defaultScopeType = `text COLLATE "C"`

// Migrate runs [Migrations], for services without migrations of their own. Several replicas may
// call it at once, and at every start. Use the same table as for [New].
func Migrate(ctx context.Context, db DB, opts ...Option) error {
	k := New(db, opts...)
	conn, err := k.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	sql := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);\n", migrationLock) + SQL(k.table, k.scope, defaultScopeType)
	if _, err := conn.Exec(ctx, sql); err != nil { // without arguments this is one transaction
		return fmt.Errorf("create table %s: %w", k.table, unavailable(err))
	}
	return nil
}

// SQL is [Migrations] as one script, for a table of your own: its name, its column of scopes, and
// the type of that column, such as "bigint" or "uuid". It changes nothing if it runs again. Command
// authority/sql prints it.
//
// SQL panics where [WithTable] does.
func SQL(table, scope, scopeType string) string {
	WithTable(table, scope)
	names := strings.NewReplacer(DefaultTable, table, "scope            "+defaultScopeType, scope+" "+scopeType,
		"(scope, key)", "("+scope+", key)")
	var script strings.Builder
	files, err := Migrations.ReadDir("migrations")
	if err != nil {
		panic(err) // they are compiled in
	}
	for _, file := range files {
		text, err := Migrations.ReadFile("migrations/" + file.Name())
		if err != nil {
			panic(err)
		}
		_, _ = names.WriteString(&script, string(text))
	}
	return script.String()
}
