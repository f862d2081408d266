package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/idempotency"
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

// What systems say themselves.
var (
	inProgress  = idempotency.InProgress(time.Second)
	unavailable = &idempotency.Error{Status: http.StatusServiceUnavailable, Code: idempotency.CodeStoreUnavailable,
		Message: "Redis cannot be asked.", RetryAfter: time.Second}
)

// refuse answers as the API does, so that clients know what to do.
func refuse(w http.ResponseWriter, e *idempotency.Error) { idempotency.WriteProblem(w, nil, e) }
