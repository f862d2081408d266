package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// headerKey carries the client's key.
const headerKey = "Idempotency-Key"

// everyRequest is no idempotency at all: each request that arrives is executed. The other systems
// decide which ones it sees.
//
// An execution goes to oncepay under a key of its own, the client's with a random end. So oncepay
// never takes two executions for one, and its table of keys tells afterwards what each client's key
// has brought about.
func everyRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get(headerKey); key != "" {
			r = r.Clone(r.Context())
			r.Header.Set(headerKey, key+verify.ExecutionMark+rand.Text())
		}
		next.ServeHTTP(w, r)
	})
}

// requestOf reads a request that was dumped.
func requestOf(raw []byte) (*http.Request, error) {
	return http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
}

// asksForRetry says that an answer is about this moment alone. None of the systems keeps such an
// answer: a client that retries later should get the outcome.
func asksForRetry(status int, header http.Header) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || header.Get("Retry-After") != ""
}

// problem is an answer of a system itself, in the API's shape, so that clients know what to do.
func problem(status int, code string) []byte {
	body, _ := json.Marshal(map[string]any{"type": "/problems/" + code, "title": http.StatusText(status), "status": status, "code": code})
	return body
}

// What systems say themselves.
const (
	problemType     = "application/problem+json"
	codeInProgress  = "idempotency_in_progress"
	codeUnavailable = "idempotency_store_unavailable"
	retryAfter      = "1" // second
)
