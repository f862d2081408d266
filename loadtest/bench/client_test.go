package main

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	found, err := drive(t.Context(), addr, 3, 20*time.Millisecond, keys{"k", math.MaxInt})
	require.NoError(t, err)
	sent := 0
	seen.Range(func(any, any) bool { sent++; return true })
	require.InDelta(t, sent, found["answered"], 0)
	require.Positive(t, found["rate"])
}

func TestDrive_FailsOnAnyOtherStatus(t *testing.T) {
	t.Parallel()
	addr := serve(t, func(string) (int, string) { return http.StatusConflict, "in progress" })
	_, err := drive(t.Context(), addr, 2, time.Minute, keys{"k", 1})
	require.ErrorContains(t, err, "409 Conflict: in progress")
}

func TestDrive_TakesTurnsWithTheKeysOfAConnection(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	addr := serve(t, func(key string) (int, string) {
		seen.Store(key, true)
		return http.StatusCreated, "{}"
	})
	_, err := drive(t.Context(), addr, 2, 200*time.Millisecond, keys{"k", 2})
	require.NoError(t, err)
	var sent []string
	seen.Range(func(key, _ any) bool { sent = append(sent, key.(string)); return true })
	require.ElementsMatch(t, []string{"k-0-0", "k-0-1", "k-1-0", "k-1-1"}, sent)
}
