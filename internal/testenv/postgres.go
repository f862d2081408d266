package testenv

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx", which pgtestdb connects with
	"github.com/peterldowns/pgtestdb"
)

// Postgres returns the URL of a migrated database of its own. It is a copy of a template, made in
// some 30 ms, and is dropped when the test passes. The role owns the database and is no superuser.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, migrator{})
}

// EmptyPostgres is like Postgres without a schema.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, pgtestdb.NoopMigrator{})
}

// PostgresServer starts a server for this test alone, which the test may stop; its database is
// migrated. It takes a second or two, so tests that need no outage use Postgres.
func PostgresServer(t testing.TB) *Server {
	t.Helper()
	b := env.outageBackend(t)
	server := newServer(t, b.startPostgres)
	if err := migrateURL(server.URL); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return server
}

func newDatabase(t testing.TB, m pgtestdb.Migrator) string {
	t.Helper()
	b := env.use(t)
	server := env.get(t, &env.postgres, func(ctx context.Context) (instance, error) {
		i, err := b.startPostgres(ctx)
		if err == nil {
			env.report("PostgreSQL " + postgresVersion(ctx, i.url()) + " " + b.name())
		}
		return i, err
	})
	config, err := pgtestdbConfig(server.url())
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return pgtestdb.Custom(t, config, m).URL()
}

// pgtestdbConfig takes a server's URL apart.
func pgtestdbConfig(raw string) (pgtestdb.Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return pgtestdb.Config{}, fmt.Errorf("server's URL: %w", err)
	}
	password, _ := u.User.Password()
	// A test makes the user of a service that cannot change the schema.
	role := pgtestdb.Role{Username: pgtestdb.DefaultRoleUsername, Password: pgtestdb.DefaultRolePassword, Capabilities: "CREATEROLE"}
	return pgtestdb.Config{
		TestRole:   &role,
		DriverName: "pgx", Host: u.Hostname(), Port: u.Port(), User: u.User.Username(), Password: password,
		Database: strings.TrimPrefix(u.Path, "/"), Options: u.RawQuery,
		// A test about broken connections may leave one behind at the server; leaks on our side are
		// goleak's to find.
		ForceTerminateConnections: true,
	}, nil
}

// postgresVersion returns a version such as "17.2", or "(unknown version)".
func postgresVersion(ctx context.Context, url string) string {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "(unknown version)"
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	version, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ") // "15.18 (Debian 15.18-0+deb12u1)"
	return version
}
