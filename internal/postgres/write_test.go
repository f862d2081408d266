package postgres

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

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
		queries := newPipeline(nil)
		tx := &transaction{Queries: dbsqlc.New(queries), pipeline: queries}
		require.NoError(t, tx.write(t.Context(), changes))
		require.NotZero(t, queries.queue.Len(), kind.Field(i).Name)
	}
}
