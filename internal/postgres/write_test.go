package postgres

import (
	"context"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// TestWrite_WritesEveryChange sets one field of the changes after the other.
func TestWrite_WritesEveryChange(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[checkout.Changes]()
	for i := range kind.NumField() {
		var changes checkout.Changes
		field := reflect.ValueOf(&changes).Elem().Field(i)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
		} else {
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		}
		queue := &queued{}
		tx := &transaction{Queries: dbsqlc.New(queue), Tx: &authority.Tx{}, store: &Store{}}
		require.NoError(t, tx.write(t.Context(), changes))
		require.NotZero(t, queue.statements, kind.Field(i).Name)
	}
}

// queued counts the statements that are queued.
type queued struct {
	dbsqlc.DBTX
	statements int
}

func (q *queued) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	q.statements += b.Len()
	return nil
}
