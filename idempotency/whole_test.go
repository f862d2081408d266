package idempotency_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestAnswer_ThatBreaksOffIsNone: a handler passes an upstream's answer on, which breaks off. A
// kept part of it would be replayed as if it were whole. With the status of an answer that is kept,
// the upstream has probably had the effect.
func TestAnswer_ThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(http.ResponseWriter){
		"too short": func(w http.ResponseWriter) { write(w, "half") },
		"too long":  func(w http.ResponseWriter) { write(w, "more than was declared") },
		"empty":     func(http.ResponseWriter) {},
		"a panic":   func(w http.ResponseWriter) { write(w, "0123456789"); panic(http.ErrAbortHandler) },
	} {
		for _, code := range []int{http.StatusCreated, http.StatusInternalServerError} {
			t.Run(name+strconv.Itoa(code), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := setup(t, idempotency.Policy{}, func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Length", "10")
						w.WriteHeader(code)
						finish(w)
					})
					post := func() { b.post(t, "key", "") }
					require.PanicsWithValue(t, http.ErrAbortHandler, post)
					if code == http.StatusCreated {
						requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
						require.Equal(t, 1, b.ran())
						time.Sleep(idempotency.DefaultLease)
					}
					require.PanicsWithValue(t, http.ErrAbortHandler, post)
					require.Equal(t, 2, b.ran())
				})
			})
		}
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
