package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
)

// driver is golang-migrate's view of a database. golang-migrate's own driver locks the session,
// which is another one at each statement behind a pooler that shares sessions among transactions.
// It also notes a version before and after the migration, so that a process that is killed in
// between leaves a "dirty" schema, which an operator has to repair. A migration that has begun is
// not broken off.
type driver struct {
	conn    *pgx.Conn // for the migrations, each of which is a transaction
	holder  *pgx.Conn // for the transaction that holds the lock
	version int       // that the next migration leads to; database.NilVersion is none
}

func openDriver(ctx context.Context, databaseURL string) (database.Driver, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	config.ConnectTimeout = acquireTimeout
	config.RuntimeParams["application_name"] = "oncepay migrate"
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // works behind every pooler
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	holder, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &driver{conn: conn, holder: holder}, nil
}

// Open is not called: the driver is opened by its connections.
func (d *driver) Open(string) (database.Driver, error) { return d, nil }

// Close closes the connections.
func (d *driver) Close() error {
	return errors.Join(d.holder.Close(context.Background()), d.conn.Close(context.Background()))
}

// migrateLimits are those of a transaction. A session may have others, of another connection.
var migrateLimits = fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;\n",
	migrateLockTimeout.Milliseconds())

// Lock lets one process at a time migrate, until Unlock or its end.
func (d *driver) Lock() error {
	key, err := database.GenerateAdvisoryLockId(d.conn.Config().Database, "public", versionTable) // as releases before
	if err == nil {
		_, err = d.holder.Exec(context.Background(), "BEGIN; "+migrateLimits+"SELECT pg_advisory_xact_lock("+key+")")
	}
	if err == nil {
		_, err = d.conn.Exec(context.Background(), "CREATE TABLE IF NOT EXISTS "+versionTable+" (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
	}
	return err
}

// Unlock ends the transaction that holds the lock.
func (d *driver) Unlock() error {
	_, err := d.holder.Exec(context.Background(), "ROLLBACK")
	return err
}

// SetVersion only remembers a version that is still being migrated to.
func (d *driver) SetVersion(version int, dirty bool) error {
	if dirty {
		d.version = version
	}
	return nil
}

// Run applies a migration and notes its version. Statements that are sent together are one
// transaction (PostgreSQL manual, "Multiple Statements in a Simple Query").
func (d *driver) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	note := "\n; TRUNCATE " + versionTable + ";"
	if d.version != database.NilVersion {
		note += fmt.Sprintf(" INSERT INTO %s (version, dirty) VALUES (%d, false);", versionTable, d.version)
	}
	_, err = d.conn.Exec(context.Background(), migrateLimits+string(text)+note)
	return err
}

// Version is what was noted last.
func (d *driver) Version() (version int, dirty bool, err error) {
	var exists bool
	if err := d.conn.QueryRow(context.Background(), "SELECT to_regclass('"+versionTable+"') IS NOT NULL").Scan(&exists); err != nil || !exists {
		return database.NilVersion, false, err
	}
	err = d.conn.QueryRow(context.Background(), "SELECT version, dirty FROM "+versionTable+" LIMIT 1").Scan(&version, &dirty)
	if errors.Is(err, pgx.ErrNoRows) {
		return database.NilVersion, false, nil
	}
	return version, dirty, err
}

// Drop is not called: "down" goes through the migrations.
func (d *driver) Drop() error { return errors.ErrUnsupported }
