package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/db"
)

// migrateLockTimeout bounds the wait for another process's migration, and for a table in use.
// Queries of that table wait behind the migration, so it is better to fail and to be tried again.
const migrateLockTimeout = 30 * time.Second

// versionTable is golang-migrate's own table.
const versionTable = "schema_migrations"

// Migrate moves the schema "up" to the newest version that this program knows, or "down" to
// nothing, with all data; "version" just looks. It returns the version that the schema has then; 0
// is none. A newer schema than this program knows is left as it is: "up" succeeds, and "down" is
// refused. Any number of processes may do it at once: one does, the others wait.
func Migrate(ctx context.Context, databaseURL, direction string) (version uint, err error) {
	known, err := newestKnown()
	if err != nil {
		return 0, err
	}
	err = withMigrations(ctx, databaseURL, func(m *migrate.Migrate) error {
		moved := move(m, direction)
		version, _, err = m.Version()
		if errors.Is(err, migrate.ErrNilVersion) {
			version, err = 0, nil
		}
		switch {
		case err != nil || version <= known:
			return errors.Join(moved, err)
		case direction == "down":
			return fmt.Errorf("schema version %d is of a newer release, which alone can take it down: %w", version, moved)
		}
		return nil // after a rollback: this release works with the newer schema
	})
	return version, err
}

func move(m *migrate.Migrate, direction string) (err error) {
	switch direction {
	case "up":
		err = m.Up()
	case "down":
		err = m.Down()
	case "version":
	default:
		return fmt.Errorf("unknown direction %q: want up, down or version", direction)
	}
	if errors.Is(err, migrate.ErrNoChange) {
		return nil
	}
	return err
}

// keysThatCount says how many of each kind there are, or NULL.
const keysThatCount = `SELECT string_agg(n || ' ' || kind, ', ' ORDER BY kind) FROM (
	SELECT count(*) AS n, CASE WHEN status = 'in_progress' THEN 'in progress' WHEN status = 'refused' THEN 'refused'
		WHEN status = 'expired' OR expires_at <= now() THEN 'tombstones' ELSE 'with a kept answer' END AS kind
	FROM idempotency_keys WHERE status = 'in_progress' OR greatest(expires_at, tombstone_until) > now() GROUP BY kind) AS counted`

// CheckKeys returns an error that counts the idempotency keys that must not be deleted yet, if
// there are any.
func CheckKeys(ctx context.Context, pool *pgxpool.Pool) error {
	var count *string
	err := pool.QueryRow(ctx, keysThatCount).Scan(&count)
	if server := (*pgconn.PgError)(nil); errors.As(err, &server) && server.Code == stateUndefinedTable {
		return nil
	}
	if err == nil && count != nil {
		return fmt.Errorf("idempotency keys still count: %s", *count)
	}
	return translate("count the idempotency keys", err)
}

// CheckSchema says whether the schema is at least the one that this program knows. A newer one is
// fine, because replicas are replaced one by one.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) error {
	known, err := newestKnown()
	if err != nil {
		return err
	}
	var version uint
	err = pool.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+versionTable).Scan(&version)
	if server := (*pgconn.PgError)(nil); errors.As(err, &server) && server.Code == stateUndefinedTable {
		version, err = 0, nil
	}
	if err != nil {
		return translate("read the schema's version", err)
	}
	if version < known {
		return fmt.Errorf("the database has schema version %d and this program needs %d: run \"oncepay migrate up\"", version, known)
	}
	return nil
}

// newestKnown is the newest version that this program knows.
func newestKnown() (version uint, err error) {
	files, err := iofs.New(db.FS, "migrations")
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	for next, err := files.First(); ; next, err = files.Next(version) {
		if errors.Is(err, fs.ErrNotExist) {
			return version, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read the migrations: %w", err)
		}
		version = next
	}
}

// withMigrations opens the migrations on a database. When the context ends, the migration that is
// being applied is the last one.
func withMigrations(ctx context.Context, databaseURL string, do func(*migrate.Migrate) error) error {
	m, err := openMigrations(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("prepare the migration: %w", err)
	}
	m.LockTimeout = migrateLockTimeout
	stopped := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stopped()
	err = do(m)
	sourceErr, databaseErr := m.Close()
	if err := errors.Join(err, context.Cause(ctx), sourceErr, databaseErr); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func openMigrations(ctx context.Context, databaseURL string) (*migrate.Migrate, error) {
	files, err := iofs.New(db.FS, "migrations")
	if err != nil {
		return nil, err
	}
	driver, err := openDriver(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("iofs", files, "pgx5", driver)
}
