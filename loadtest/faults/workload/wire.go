// Package workload makes the requests of a campaign: clients that shop, retry as the API asks them to, race each other, and come
// back later, with every attempt in the journal.
package workload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// answerTimeout is what an impatient shop waits: longer than the provider is given, shorter than a pause.
	answerTimeout = 6 * time.Second
	// firstPause and longestPause bound the random pauses between attempts.
	firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second
	// budget is when a client gives up on a request, and leaves it to Settle.
	budget = 25 * time.Second
	// maxIdle keeps every connection of a campaign open.
	maxIdle = 512
)

// Request is one logical request; its attempts share the key.
type Request struct {
	Account, Key, Operation, Path string
	Body                          []byte
	Client                        int
	Via                           string // nginx, api-1 or api-2; empty: nginx mostly
}

// fingerprint names the meaning: the path and the body.
func (r Request) fingerprint() string {
	sum := sha256.Sum256(append([]byte(r.Path+"\n"), r.Body...))
	return hex.EncodeToString(sum[:4])
}

// Wire sends requests and journals them. Safe for concurrent use.
type Wire struct {
	Doors   map[string]string // base URLs by name: nginx, api-1, api-2
	Journal *journal.Writer
	Began   time.Time

	http     *http.Client
	inFlight atomic.Int64
}

// NewWire makes a wire whose clock begins now.
func NewWire(doors map[string]string, j *journal.Writer) *Wire {
	transport := &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 20 * time.Second}
	return &Wire{Doors: doors, Journal: j, Began: time.Now(), http: &http.Client{Transport: transport}}
}

// InFlight is how many requests wait for their answers.
func (w *Wire) InFlight() int64 { return w.inFlight.Load() }

// Close gives the connections back.
func (w *Wire) Close() { w.http.CloseIdleConnections() }

// Once makes one attempt.
func (w *Wire) Once(ctx context.Context, r Request, number int) journal.Attempt {
	a := journal.Attempt{Invoke: time.Since(w.Began), Client: r.Client, Account: r.Account, Key: r.Key, Operation: r.Operation,
		Fingerprint: r.fingerprint(), Number: number, Via: r.Via}
	w.inFlight.Add(1)
	w.exchange(ctx, r, &a)
	w.inFlight.Add(-1)
	a.Return = time.Since(w.Began)
	w.Journal.Add(a)
	return a
}

func (w *Wire) exchange(ctx context.Context, r Request, a *journal.Attempt) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Doors[r.Via]+"/v1"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		a.Error = err.Error()
		return
	}
	q.GetBody = nil // or net/http would send it again by itself, unseen
	q.Header = http.Header{"Authorization": {"Bearer " + r.Account}, "Content-Type": {"application/json"}, "Idempotency-Key": {r.Key}}
	answer, err := w.http.Do(q)
	if err != nil {
		a.Error = err.Error()
		return
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	a.Status, a.Replica = answer.StatusCode, answer.Header.Get("X-Served-By")
	a.Replayed = answer.Header.Get("X-Idempotent-Replay") == "true"
	if err != nil {
		a.Error = "in mid-answer: " + err.Error()
		return
	}
	var known struct{ ID, Code string }
	_ = json.Unmarshal(body, &known)
	sum := sha256.Sum256(body)
	a.Body, a.Code, a.Resource = hex.EncodeToString(sum[:]), known.Code, known.ID
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
}

// Call repeats a request until it is decided, with the same key, as the API's table of status codes says: after no answer, a 5xx or
// a conflict that says so, with full jitter and no sooner than Retry-After.
func (w *Wire) Call(ctx context.Context, r Request, random *rand.Rand) journal.Attempt {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	fixed := r.Via != ""
	for number := 1; ; number++ {
		if !fixed {
			r.Via = door(random)
		}
		a := w.Once(ctx, r, number)
		if a.Outcome().Decided() || isFinalRejection(a) {
			return a
		}
		fixed = false // the next one goes wherever it gets through
		limit := min(longestPause, firstPause<<min(number, 10))
		pause := a.RetryAfter + time.Duration(random.Int64N(int64(limit)))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a
		}
	}
}

// isFinalRejection is a 4xx that no retry changes, such as 400, 401 and 404.
func isFinalRejection(a journal.Attempt) bool {
	return a.Outcome() == journal.Rejected && a.Status != http.StatusConflict && a.Status != http.StatusTooManyRequests &&
		a.Status != http.StatusRequestTimeout && a.Status != http.StatusTooEarly
}

func door(random *rand.Rand) string {
	switch random.IntN(10) {
	case 0:
		return "api-1"
	case 1:
		return "api-2"
	}
	return "nginx"
}
