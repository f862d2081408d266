package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx", which pgtestdb connects with
	"github.com/peterldowns/pgtestdb"
	"github.com/peterldowns/pgtestdb/migrators/common"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/db"
	"github.com/oncepay/oncepay/internal/localserver"
)

// database is the database, its owner and the owner's password, as localserver.PostgresURL has
// them.
const database = "oncepay"

var (
	postgresKind = kind{
		Kind: localserver.Postgres, port: "5432/tcp",
		command: []string{"postgres", "-c", "listen_addresses=*", "-c", "max_connections=200"},
		env:     map[string]string{"POSTGRES_USER": database, "POSTGRES_PASSWORD": database, "POSTGRES_DB": database},
	}
	postgresConfig = localserver.Config{Settings: localserver.NoSync}
	sharedPostgres = shared(postgresKind, postgresConfig)
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
	server := newServer(t, localserver.Postgres, postgresConfig)
	pool, err := sql.Open("pgx", server.URL)
	require.NoError(t, err)
	require.NoError(t, errors.Join(migrator{}.Migrate(t.Context(), pool, pgtestdb.Config{}), pool.Close()))
	return server
}

func newDatabase(t testing.TB, m pgtestdb.Migrator) string {
	t.Helper()
	host, port, err := net.SplitHostPort(sharedPostgres(t).Addr)
	require.NoError(t, err)
	// A test makes the user of a service that cannot change the schema.
	role := pgtestdb.Role{Username: pgtestdb.DefaultRoleUsername, Password: pgtestdb.DefaultRolePassword, Capabilities: "CREATEROLE"}
	return pgtestdb.Custom(t, pgtestdb.Config{
		TestRole: &role, DriverName: "pgx", Host: host, Port: port, User: database, Password: database, Database: database, Options: "sslmode=disable",
		// A test about broken connections may leave one behind at the server; leaks on our side are
		// goleak's to find.
		ForceTerminateConnections: true,
	}, m).URL()
}

// migrator applies the embedded migrations to pgtestdb's template. It uses golang-migrate itself
// and not internal/postgres, whose own tests need this package.
type migrator struct{}

// Hash changes when any migration does.
func (migrator) Hash() (string, error) { return common.HashDirs(db.FS, "*.sql", "migrations") }

// Migrate brings an empty database to the newest version.
func (migrator) Migrate(_ context.Context, pool *sql.DB, _ pgtestdb.Config) error {
	source, sourceErr := iofs.New(db.FS, "migrations")
	driver, driverErr := migratepgx.WithInstance(pool, &migratepgx.Config{})
	if err := errors.Join(sourceErr, driverErr); err != nil {
		return fmt.Errorf("prepare the migration: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return fmt.Errorf("prepare the migration: %w", err)
	}
	err = m.Up()
	sourceErr, driverErr = m.Close()
	return errors.Join(err, sourceErr, driverErr)
}
