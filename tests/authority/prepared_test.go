package authority_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
)

// uses are calls that make all statements, in an order in which all of them succeed, also again.
func uses(ctx context.Context, keys *authority.Keys) []func() error {
	once := func(key string) func() error {
		return func() error { _, err := keys.Once(ctx, claim(key), done(1)); return err }
	}
	began := func(_ context.Context, tx *authority.Tx) (authority.Outcome, error) {
		return authority.Begun("operation"), nil
	}
	attempt := authority.Attempt{Key: "begun", ID: "operation", Number: 1}
	return []func() error{
		once("new"),
		once("kept"),
		func() error { _, _, err := keys.Begin(ctx, claim("begun"), began, nil); return err },
		func() error { _, err := keys.SettleAny(ctx, attempt, done(0)); return err },
		func() error { return keys.PutOff(ctx, attempt, 0) },
		func() error { return keys.Hold(ctx, attempt) },
		func() error { _, err := keys.Look(ctx, "", "kept"); return err },
		func() error { _, err := keys.Find(ctx, "none"); return ignoreNotFound(err) },
		func() error { _, err := keys.Due(ctx, 0, 1); return err },
		func() error { _, err := keys.Held(ctx, 1); return err },
		func() error { _, err := keys.Purge(ctx, 1); return err },
		func() error { _, err := keys.Unsettled(ctx, 0); return err },
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, authority.ErrNotFound) {
		return nil
	}
	return err
}

// TestAuthority_IsUnavailableWhileAPreparedStatementDoesNotFit: a migration has changed the type of
// a result, or a pool has given the session to others. A retry succeeds.
func TestAuthority_IsUnavailableWhileAPreparedStatementDoesNotFit(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	keys := authority.New(pool)
	for state, disturb := range map[string]string{
		"0A000": "ALTER TABLE idempotency_keys ALTER COLUMN operation TYPE varchar(%d)",
		"26000": "DEALLOCATE ALL -- %d",
	} {
		pool.Reset()
		met, length := 0, 100
		for _, use := range uses(ctx, keys) {
			for range 3 { // until its statements are prepared, on the only connection
				_ = retried(t, state, use)
			}
			length++
			_, err := pool.Exec(ctx, fmt.Sprintf(disturb, length))
			require.NoError(t, err)
			met += retried(t, state, use)
		}
		require.Positive(t, met, state)
	}
}

// TestAuthority_IsUnavailableWhileAStatementIsPreparedByAnother: a pool without its own bookkeeping
// has given the session to one that prepared the same statements.
func TestAuthority_IsUnavailableWhileAStatementIsPreparedByAnother(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	for range 2 {
		for _, use := range uses(ctx, authority.New(pool)) {
			require.NoError(t, use())
		}
	}
	var names []string
	require.NoError(t, pool.QueryRow(ctx, "SELECT array_agg(name) FROM pg_prepared_statements WHERE name <> ''").Scan(&names))
	config := pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) (err error) {
		for _, name := range names {
			_, failed := conn.Exec(ctx, "PREPARE "+pgx.Identifier{name}.Sanitize()+" AS SELECT 1")
			err = errors.Join(err, failed)
		}
		return err
	}
	shared, err := pgxpool.NewWithConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(shared.Close)
	met := 0
	for _, use := range uses(ctx, authority.New(shared)) {
		if err := use(); err != nil { // in this session there is no end to it
			require.ErrorIs(t, err, idempotency.ErrUnavailable)
			require.ErrorContains(t, err, "42P05")
			met++
		}
	}
	require.Positive(t, met)
}

// retried retries what is unavailable with a state, once for each of its round trips at most, and
// returns how often.
func retried(t *testing.T, state string, use func() error) (met int) {
	t.Helper()
	for {
		err := use()
		if err == nil {
			return met
		}
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
		require.ErrorContains(t, err, state)
		require.Less(t, met, 4, err)
		met++
	}
}

// TestCommit_ThatRollsBackIsUnavailable overlooks an error, with a key and without one.
func TestCommit_ThatRollsBackIsUnavailable(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	for _, key := range []string{"", "k"} {
		_, err := authority.New(pool).Once(ctx, claim(key), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			_, err := tx.Exec(ctx, "SELECT 1 / 0")
			require.Error(t, err)
			return authority.Done(authority.Answer{Status: 201}), nil
		})
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
	}
	_, err := authority.New(pool).Look(ctx, "", "k")
	require.ErrorIs(t, err, authority.ErrNotFound)
}
