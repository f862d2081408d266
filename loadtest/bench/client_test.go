package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve returns the address of a server whose answers are told by a function of the key.
func serve(t *testing.T, answer func(key string) (status int, body string)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r.Header.Get("Idempotency-Key"))
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestDrive_CountsTheAnswersOfEachConnection(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	addr := serve(t, func(key string) (int, string) {
		seen.Store(key, true)
		return http.StatusCreated, "{}"
	})
	found, err := drive(t.Context(), addr, 3, 20*time.Millisecond, func(c, n int) string { return fmt.Sprint(c, "-", n) })
	require.NoError(t, err)
	keys := 0
	seen.Range(func(any, any) bool { keys++; return true })
	require.InDelta(t, keys, found["answered"], 0)
	require.Positive(t, found["rate"])
}

func TestDrive_FailsOnAnyOtherStatus(t *testing.T) {
	t.Parallel()
	addr := serve(t, func(string) (int, string) { return http.StatusConflict, "in progress" })
	_, err := drive(t.Context(), addr, 2, time.Minute, func(int, int) string { return "k" })
	require.ErrorContains(t, err, "409 Conflict: in progress")
}

func TestCheckReplays_TellsExecutionsFromReplays(t *testing.T) {
	t.Parallel()
	var executed atomic.Int64
	executing := serve(t, func(string) (int, string) { return http.StatusCreated, fmt.Sprint(executed.Add(1)) })
	replaying := serve(t, func(key string) (int, string) { return http.StatusCreated, key })
	require.NoError(t, checkReplays(t.Context(), executing, false))
	require.ErrorContains(t, checkReplays(t.Context(), executing, true), "the answers to one key are")
	require.NoError(t, checkReplays(t.Context(), replaying, true))
	require.Error(t, checkReplays(t.Context(), replaying, false))
}
