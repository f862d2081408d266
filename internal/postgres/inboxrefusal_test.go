package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
)

// TestRefusal_IsOfOneEvent: other errors concern all events, and no event is given up for them.
func TestRefusal_IsOfOneEvent(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"22003": true, "23514": true, "54000": true, "P0001": true, "XX001": true,
		"08006": false, "25006": false, "40001": false, "40P01": false, "42501": false, "42P01": false,
		"53100": false, "53300": false, "55P03": false, "57014": false, "57P01": false, "58030": false,
	} {
		require.Equal(t, want, errors.Is(refusal(&pgconn.PgError{Code: code}), outbox.ErrRefused), code)
	}
	require.NotErrorIs(t, refusal(errors.New("no connection")), outbox.ErrRefused)
}
