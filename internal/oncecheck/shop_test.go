package oncecheck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a service that does everything right, except for one flaw.
type shop struct {
	flaw string // the rule that it breaks; empty: none

	mu      sync.Mutex
	effects int64
	records map[string]*record
}

// record is what the shop knows of a key.
type record struct {
	fingerprint string
	done        bool
	at          time.Time // when it was done
	conflict    bool      // somebody was told to retry
	status      int
	body        string
	over        chan struct{} // its handler has ended; nil: it had none
}

// work is how long an effect takes: long enough for others to come meanwhile.
const work = 100 * time.Millisecond

// notice is how long a flawed shop looks out for what shows its flaw: a client that is gone, or
// another request with the key. On a busy machine both come late.
const notice = time.Second

func newShop(t *testing.T, flaw string) (*shop, string) {
	t.Helper()
	s := &shop{flaw: flaw, records: map[string]*record{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func (s *shop) count(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects, nil
}

// forget is a disturbance: only a flawed shop has no other memory.
func (s *shop) forget(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flaw == "survives" {
		clear(s.records)
	}
	return nil
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		n, _ := s.count(r.Context())
		_, _ = fmt.Fprintf(w, `{"data":{"total":%d}}`, n)
		return
	}
	if s.flaw == "slow-client" {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(work))
	}
	body, err := io.ReadAll(r.Body)
	key, status := s.key(r)
	if status != 0 {
		http.Error(w, "bad key", status)
		return
	}
	if err != nil || !json.Valid(body) {
		s.refuse(w, key)
		return
	}
	if key == "" {
		s.answer(w, &record{status: http.StatusCreated, body: s.effect()})
		return
	}
	s.keyed(w, r, key, s.fingerprint(r, string(body)))
}

// key returns the key within its account, or the status that refuses it.
func (s *shop) key(r *http.Request) (key string, status int) {
	text := r.Header.Get("Idempotency-Key")
	_, sent := r.Header["Idempotency-Key"]
	switch {
	case (s.flaw == "no-key" && !sent) || (s.flaw == "empty-key" && sent && text == ""):
		return "", 0
	case text == "":
		return "", http.StatusBadRequest
	case s.flaw == "long-key":
		text = text[:min(255, len(text))]
	case s.flaw == "similar-keys":
		text = strings.ToLower(text)
	case s.flaw == "quoted-key" && text[0] == '"', s.flaw == "strange-keys" && strings.Contains(text, ","):
		return "", http.StatusInternalServerError
	}
	if s.flaw == "other-caller" {
		return text, 0
	}
	return r.Header.Get("Authorization") + " " + text, 0
}

func (s *shop) fingerprint(r *http.Request, body string) string {
	if s.flaw != "member-order" {
		var value any
		_ = json.Unmarshal([]byte(body), &value)
		canonical, _ := json.Marshal(value)
		body = string(canonical)
	}
	switch s.flaw {
	case "other-body":
		return r.URL.Path
	case "other-path":
		return body
	}
	return r.URL.Path + body
}

func (s *shop) refuse(w http.ResponseWriter, key string) {
	answer := &record{status: http.StatusBadRequest, body: "bad JSON", done: true}
	if s.flaw == "error-then-key" {
		s.mu.Lock()
		s.records[key] = answer
		s.mu.Unlock()
	}
	s.answer(w, answer)
}

// keyed executes a request, or answers for the one that was.
func (s *shop) keyed(w http.ResponseWriter, r *http.Request, key, fingerprint string) {
	s.mu.Lock()
	known, found := s.records[key]
	if found && s.flaw == "lost-answer" { // until the first client is known to have its answer or not
		s.mu.Unlock()
		<-known.over
		s.mu.Lock()
		known, found = s.records[key]
	}
	if found && known.done && s.flaw == "retention" && time.Since(known.at) > work {
		found = false
	}
	if found && !known.done && strings.HasSuffix(s.flaw, "-at-once") {
		found = false
	}
	if found {
		defer s.mu.Unlock()
		s.known(w, known, fingerprint)
		return
	}
	own := &record{fingerprint: fingerprint, status: http.StatusCreated, over: make(chan struct{})}
	defer close(own.over)
	s.records[key] = own
	s.mu.Unlock()
	answer := s.effect()
	gone, takes := false, work
	if s.flaw == "client-leaves" || s.flaw == "polite-retry" || s.flaw == "retry-after" || strings.HasSuffix(s.flaw, "-at-once") {
		takes = notice
	}
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		gone = s.flaw == "client-leaves"
	}
	s.mu.Lock()
	own.body, own.done, own.at = answer, true, time.Now()
	if gone {
		delete(s.records, key)
	}
	s.mu.Unlock()
	s.answer(w, own)
	if s.flaw != "lost-answer" {
		return
	}
	_ = http.NewResponseController(w).Flush()
	select {
	case <-time.After(notice):
	case <-r.Context().Done():
		s.mu.Lock()
		delete(s.records, key)
		s.mu.Unlock()
	}
}

func (s *shop) known(w http.ResponseWriter, known *record, fingerprint string) {
	switch {
	case !known.done || (s.flaw == "polite-retry" && known.conflict):
		known.conflict = true
		text := "busy"
		if s.flaw != "retry-after" {
			w.Header().Set("Retry-After", "1")
			text = "in progress"
		}
		http.Error(w, text, http.StatusConflict)
	case known.fingerprint != fingerprint && known.fingerprint != "":
		http.Error(w, "the key is another request's", http.StatusUnprocessableEntity)
	case s.flaw == "replay":
		s.answer(w, &record{status: http.StatusOK, body: known.body})
	default:
		if s.flaw == "one-effect" {
			s.effects++
		}
		s.answer(w, known)
	}
}

func (s *shop) effect() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects++
	return fmt.Sprintf(`{"id":%d}`, s.effects)
}

func (s *shop) answer(w http.ResponseWriter, r *record) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(r.body)))
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.body)
}
