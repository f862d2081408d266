package idempotency_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestAnswer_OfAnotherLengthThanDeclaredIsNone: a handler passes an upstream's answer on, which
// breaks off. A kept part of it would be replayed as if it were whole.
func TestAnswer_OfAnotherLengthThanDeclaredIsNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"half", "more than was declared", ""} {
		b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusCreated)
			write(w, body)
		})
		for range 2 {
			require.PanicsWithValue(t, http.ErrAbortHandler, func() { b.post(t, "key", "") })
		}
		require.Equal(t, 2, b.ran(), "the key was released")
	}
}

// TestAnswer_HasItsLength: to a peer that speaks HTTP/1.0 the end of a broken connection would look
// like the end of a long answer.
func TestAnswer_HasItsLength(t *testing.T) {
	t.Parallel()
	b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) { write(w, string(make([]byte, 10_000))) })
	for range 2 {
		require.Equal(t, "10000", b.post(t, "key", "").Header().Get("Content-Length"))
	}
}
