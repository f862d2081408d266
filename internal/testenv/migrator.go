package testenv

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/peterldowns/pgtestdb"

	"github.com/oncepay/oncepay/db"
)

// migrator applies the embedded migrations to pgtestdb's template. It uses golang-migrate itself
// and not internal/postgres, whose own tests need this package.
type migrator struct{}

var _ pgtestdb.Migrator = migrator{}

// Hash changes when any migration does.
func (migrator) Hash() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(db.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(db.FS, path)
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// Migrate brings an empty database to the newest version.
func (migrator) Migrate(_ context.Context, database *sql.DB, _ pgtestdb.Config) error {
	return migrateUp(database)
}

func migrateURL(url string) error {
	database, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	return errors.Join(migrateUp(database), database.Close())
}

func migrateUp(database *sql.DB) error {
	source, err := iofs.New(db.FS, "migrations")
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	driver, err := migratepgx.WithInstance(database, &migratepgx.Config{})
	if err != nil {
		return fmt.Errorf("prepare the migration: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return fmt.Errorf("prepare the migration: %w", err)
	}
	upErr := m.Up()
	sourceErr, databaseErr := m.Close()
	if err := errors.Join(upErr, sourceErr, databaseErr); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
