package authority_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// TestTx_CallsTheCallbacksOfABatch by whatever reads their results, and before the commit.
func TestTx_CallsTheCallbacksOfABatch(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	_, err := pool.Exec(ctx, "CREATE TABLE stock (n integer); INSERT INTO stock VALUES (0)")
	require.NoError(t, err)
	soldOut, keys := errors.New("sold out"), authority.New(pool)
	for name, end := range map[string]func(context.Context, *authority.Tx, pgx.BatchResults) error{
		"Close": func(_ context.Context, _ *authority.Tx, r pgx.BatchResults) error { return r.Close() },
		"Send and Close": func(ctx context.Context, tx *authority.Tx, r pgx.BatchResults) error {
			return errors.Join(tx.Send(ctx), r.Close())
		},
		"Send":   func(ctx context.Context, tx *authority.Tx, _ pgx.BatchResults) error { return tx.Send(ctx) },
		"commit": func(context.Context, *authority.Tx, pgx.BatchResults) error { return nil },
		"a statement": func(ctx context.Context, tx *authority.Tx, _ pgx.BatchResults) error {
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		},
		"a later result": func(ctx context.Context, tx *authority.Tx, r pgx.BatchResults) error {
			later := tx.SendBatch(ctx, queued("SELECT 1"))
			if err := tx.Send(ctx); err != nil {
				return err
			}
			_, _ = later.Exec()
			return r.Close()
		},
	} {
		for _, left := range []int{0, 1} {
			_, err := pool.Exec(ctx, "UPDATE stock SET n = $1", left)
			require.NoError(t, err)
			once := claim(name)
			called := 0
			result, err := keys.Once(ctx, once, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
				batch := queued("UPDATE stock SET n = n")
				batch.Queue("UPDATE stock SET n = n - 1 WHERE n > 0").Exec(func(tag pgconn.CommandTag) error {
					if called++; tag.RowsAffected() == 0 {
						return soldOut
					}
					return nil
				})
				return authority.Done(authority.Answer{Status: 201}), end(ctx, tx, tx.SendBatch(ctx, batch))
			})
			require.Equal(t, 1, called, name)
			if left == 0 {
				require.ErrorIs(t, err, soldOut, name)
				_, err = keys.Look(ctx, once.Scope, once.Key)
				require.ErrorIs(t, err, authority.ErrNotFound, name)
				continue
			}
			require.NoError(t, err, name)
			require.False(t, result.Replayed, name)
		}
	}
}

// TestTx_LetsABatchsCallbackRefuse: Close has returned its error, and what it means is kept.
func TestTx_LetsABatchsCallbackRefuse(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	called, soldOut := 0, errors.New("sold out")
	result, err := authority.New(pool).Once(ctx, claim("k"), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
		batch := &pgx.Batch{}
		for range 2 {
			batch.Queue("SELECT 1").Exec(func(pgconn.CommandTag) error { called++; return soldOut })
		}
		require.ErrorIs(t, tx.SendBatch(ctx, batch).Close(), soldOut)
		return authority.Refused(authority.Answer{Status: 409}), nil
	})
	require.NoError(t, err)
	require.Equal(t, 409, result.Status)
	require.Equal(t, 1, called, "the first error ends them, as in pgx")
	result, err = authority.New(pool).Once(ctx, claim("k"), done(1))
	require.NoError(t, err)
	require.True(t, result.Replayed)
	require.Equal(t, 409, result.Status)
}

// TestTx_ReplaysWhateverTheFunctionMakesOfATakenKey, also one that ignores an error.
func TestTx_ReplaysWhateverTheFunctionMakesOfATakenKey(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	_, err := pool.Exec(ctx, "CREATE TABLE things (id integer PRIMARY KEY)")
	require.NoError(t, err)
	called := 0
	for i := range 3 {
		result, err := authority.New(pool).Once(ctx, claim("k"), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			_, _ = tx.Exec(ctx, "SELECT 1")
			batch := &pgx.Batch{}
			batch.Queue("SELECT 1").Exec(func(pgconn.CommandTag) error { called++; return nil })
			_ = tx.SendBatch(ctx, batch).Close()
			if _, err := tx.Exec(ctx, "INSERT INTO things VALUES (1)"); err != nil {
				return authority.Outcome{}, errors.New("no insert") // hides the cause
			}
			return authority.Done(authority.Answer{Status: 201}), nil
		})
		require.NoError(t, err)
		require.Equal(t, i > 0, result.Replayed)
		require.Equal(t, 201, result.Status)
	}
	require.Equal(t, 1, called)
}

// TestOnce_RefusesAnswersThatWouldChange before anything is committed. A body may have any bytes.
func TestOnce_RefusesAnswersThatWouldChange(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	keys := authority.New(pool)
	for _, bad := range []string{"caf\xe9", "a\x00b"} {
		for name, answer := range map[string]authority.Answer{
			"value":    {Status: 201, Header: map[string]string{"X-Name": bad}},
			"name":     {Status: 201, Header: map[string]string{bad: "v"}},
			"resource": {Status: 201, Resource: bad},
		} {
			for _, o := range []authority.Outcome{authority.Done(answer), authority.Refused(answer)} {
				_, err := keys.Once(ctx, claim(name), func(context.Context, *authority.Tx) (authority.Outcome, error) { return o, nil })
				require.ErrorContains(t, err, "must be UTF-8 without a NUL", name)
				require.False(t, authority.IsUnavailable(err), "no retry helps")
				_, err = keys.Look(ctx, "", name)
				require.ErrorIs(t, err, authority.ErrNotFound)
			}
		}
	}
	for range 2 {
		result, err := keys.Once(ctx, claim("body"), func(context.Context, *authority.Tx) (authority.Outcome, error) {
			return authority.Done(authority.Answer{Status: 201, Body: []byte("caf\xe9\x00")}), nil
		})
		require.NoError(t, err)
		require.Equal(t, "caf\xe9\x00", string(result.Body))
	}
}
