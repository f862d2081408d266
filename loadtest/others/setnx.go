package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"
)

// setNX is the recipe of many articles: SET NX "processing" with a time to live. The request that
// sets the key runs the handler. It then replaces the value by the answer as JSON, or deletes the
// key if the answer asks for a retry. A request that finds the key set answers with the kept JSON,
// or with 409. Here the recipe also keeps accounts apart, which not every article does.
type setNX struct {
	redis redis.Cmdable
	next  http.Handler
}

const (
	processing = "processing"
	// processingTTL is the usual one: longer than the slowest handler, because nothing prolongs it.
	processingTTL = 60 * time.Second
	answerTTL     = 24 * time.Hour
)

// keptAnswer is an answer as it is kept.
type keptAnswer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// ServeHTTP implements [http.Handler].
func (s setNX) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(headerKey)
	if key == "" || r.Method == http.MethodGet {
		s.next.ServeHTTP(w, r)
		return
	}
	account := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	name := "setnx:" + hex.EncodeToString(account[:8]) + ":" + key
	ctx := context.WithoutCancel(r.Context()) // a client that hangs up ends nothing
	err := s.redis.SetArgs(ctx, name, processing, redis.SetArgs{Mode: "NX", TTL: processingTTL}).Err()
	switch {
	case errors.Is(err, redis.Nil):
		s.answer(ctx, w, name)
	case err != nil:
		refuse(w, unavailable)
	default:
		s.run(ctx, w, r, name)
	}
}

// answer speaks for what is there.
func (s setNX) answer(ctx context.Context, w http.ResponseWriter, name string) {
	text, err := s.redis.Get(ctx, name).Result()
	var kept keptAnswer
	switch {
	case errors.Is(err, redis.Nil), text == processing:
		refuse(w, inProgress)
	case err != nil, json.Unmarshal([]byte(text), &kept) != nil:
		refuse(w, unavailable)
	default:
		send(w, kept)
	}
}

// run has the handler answer, keeps the answer and sends it.
func (s setNX) run(ctx context.Context, w http.ResponseWriter, r *http.Request, name string) {
	final := false
	defer func() {
		if !final { // also after a panic
			s.redis.Del(ctx, name)
		}
	}()
	out := httptest.NewRecorder()
	s.next.ServeHTTP(out, r)
	answer := keptAnswer{out.Code, out.Header(), out.Body.String()}
	if final = !asksForRetry(out.Code, out.Header()); final {
		text, _ := json.Marshal(answer)
		s.redis.Set(ctx, name, text, answerTTL) // when that fails, the client still gets its answer
	}
	send(w, answer)
}

func send(w http.ResponseWriter, a keptAnswer) {
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(a.Body)) // the client may be gone
}
