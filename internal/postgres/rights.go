package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/db"
)

// grantsLock lets one replica's migration at a time change rights: PostgreSQL refuses to change
// those of one table twice at once.
const grantsLock = 0x6f6e63657061794

// Grant lets a role do what [db.Rights] says, and nothing else in the schema. With a password it
// creates the role first, or sets its password. Replicas that serve as this role notice nothing:
// all of it is one transaction.
func Grant(ctx context.Context, pool *pgxpool.Pool, role, password string) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", grantsLock); err != nil {
			return err
		}
		var exists, ourselves bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1), current_user = $1", role).Scan(&exists, &ourselves)
		switch {
		case err != nil:
			return err
		case ourselves:
			return errors.New("it is the role that migrates, which would lose its rights")
		case !exists && password == "":
			return errors.New("there is no such role: create it, or set DATABASE_SERVICE_PASSWORD")
		case password != "":
			if err := setPassword(ctx, tx, role, password, exists); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, strings.ReplaceAll(db.Rights, "service_role", pgx.Identifier{role}.Sanitize()))
		return err
	})
	if err != nil {
		return fmt.Errorf("grant the role %s what the service does: %w", role, err)
	}
	return nil
}

func setPassword(ctx context.Context, tx pgx.Tx, role, password string, exists bool) error {
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	var statement string // PostgreSQL quotes its own way: utility statements take no parameters
	err := tx.QueryRow(ctx, "SELECT format('%s ROLE %I LOGIN PASSWORD %L', $1::text, $2::text, $3::text)", verb, role, password).Scan(&statement)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statement)
	return err
}

// powersSQL names what a role that serves must not have. The rights over all tables come by roles
// such as pg_write_all_data, too.
const powersSQL = `SELECT coalesce((SELECT CASE
	WHEN rolsuper THEN 'is a superuser'
	WHEN rolcreaterole OR rolreplication OR rolbypassrls THEN 'may create roles, replicate or bypass row security'
	WHEN has_schema_privilege('public', 'CREATE') THEN 'may create in the schema'
	WHEN has_database_privilege(current_database(), 'CREATE') THEN 'may create schemas'
	WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND pg_has_role(relowner, 'MEMBER')) THEN 'owns tables, or belongs to a role that does'
	WHEN has_table_privilege('ledger_entries', 'UPDATE, DELETE, TRUNCATE, TRIGGER') THEN 'may change the ledger'
	WHEN has_table_privilege('api_keys', 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER') THEN 'may change API keys'
END FROM pg_roles WHERE rolname = current_user), '')`

// Powers says what the pool's role may do that the service's must not; empty: nothing.
func Powers(ctx context.Context, pool *pgxpool.Pool) (powers string, err error) {
	return powers, translate("read the rights of the service's role", pool.QueryRow(ctx, powersSQL).Scan(&powers))
}
