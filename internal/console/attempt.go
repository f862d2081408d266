package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/stack"
)

// keptAttempts is how many attempts are remembered: what you sent, beside a demonstration.
const keptAttempts = 32

// attempt is a client attempt: one request that a shopper sent, with what became of it.
type attempt struct {
	ID    int
	Trace string // 32 hex digits
	By    string // you or demonstration
	What  string // in words
	Key   string
	Door  string // nginx, api-1, api-2
	Began time.Time

	Done bool
	Took time.Duration
	answer
	Error string // why there was no answer

	Calls []call // what replicas did for it, in the order of time
}

// call is something that a replica did: the request itself, or a question to a server.
type call struct {
	Span    string
	Replica string
	To      string // redis, postgres or pspsim; empty: the request at the replica
	Name    string // of the request: how its idempotency check ended
	Began   time.Time
	Took    time.Duration
	Failed  bool
}

// pay sends a payment once through a door, as an attempt. The error says that there was no answer.
func (s *Server) pay(ctx context.Context, by, what, door string, p purchase) (answer, error) {
	if err := ctx.Err(); err != nil { // it would not be sent
		return answer{}, err
	}
	a := s.attempt(attempt{By: by, What: what, Key: p.Key, Door: door})
	got, err := s.shop.send(ctx, door, http.MethodPost, p.path(), p.Key, a.Trace, p.body())
	s.change(func(*state) {
		a.Done, a.Took, a.answer = true, time.Since(a.Began), got
		if err != nil {
			a.Error = err.Error()
		}
	})
	return got, err
}

// attempt gives an attempt its number, trace and time, and remembers it.
func (s *Server) attempt(a attempt) *attempt {
	a.Trace, a.Began = fmt.Sprintf("%x", [16]byte(uuid.New())), time.Now()
	s.change(func(now *state) {
		now.begun++
		a.ID = now.begun
		now.Attempts = slices.Insert(now.Attempts, 0, &a)
		now.Attempts = now.Attempts[:min(len(now.Attempts), keptAttempts)]
	})
	return &a
}

// firstWorker is the replica that began the oldest known attempt with a key, or "".
func (now *state) firstWorker(key string) string {
	for _, a := range slices.Backward(now.Attempts) {
		switch {
		case a.Key != key:
		case len(a.Calls) > 0:
			return a.Calls[0].Replica
		case a.ServedBy != "":
			return a.ServedBy
		}
	}
	return ""
}

// add adds what a replica did, unless it was told before.
func (a *attempt) add(c call) {
	if !slices.ContainsFunc(a.Calls, func(known call) bool { return known.Span == c.Span }) {
		a.Calls = append(a.Calls, c)
		slices.SortStableFunc(a.Calls, func(a, b call) int { return a.Began.Compare(b.Began) })
	}
}

// isOn reports whether a connection waits for the answer: the way to the replica that was last seen
// working on the attempt.
func (a attempt) isOn(c connection) bool {
	worker := ""
	if last := len(a.Calls) - 1; last >= 0 {
		worker = a.Calls[last].Replica
	}
	return !a.Done && (c == connection{clients, a.Door} || c == connection{stack.Nginx, worker})
}

// fellSilent reports whether a replica began the attempt and never told its end, although the
// client has an answer, or will have none.
func (a attempt) fellSilent(replica string) bool {
	began, ended := false, false
	for _, c := range a.Calls {
		began = began || c.Replica == replica
		ended = ended || c.Replica == replica && c.To == ""
	}
	complete := a.Done && time.Since(a.Began.Add(a.Took)) > 2*time.Second // the last spans come after the answer
	return complete && began && !ended && replica != a.ServedBy
}

// Outcome is what the client got, in words.
func (a attempt) Outcome() string {
	switch {
	case !a.Done:
		return "waiting for an answer"
	case a.Replay:
		return fmt.Sprintf("%d, replayed by %s", a.Status, a.replayer())
	case a.Code != "" && a.RetryAfter != "":
		return a.String() + ", retry after " + a.RetryAfter + " s"
	}
	return a.String()
}

// replayer says which tier had the answer: PostgreSQL if it was asked after Redis. An earlier query
// only authenticates the client.
func (a attempt) replayer() string {
	last := stack.Redis
	for _, c := range a.Calls {
		if c.Replica == a.ServedBy && (c.To == stack.Postgres || c.Name == "set") {
			last = c.To
		}
	}
	return title(last)
}

// Lost says which fence stopped an attempt, or "".
func (a attempt) Lost() string {
	for _, c := range a.Calls {
		if c.To == "" && c.Name == "lost" {
			return c.Replica + " lost its lease: another attempt decides, and its own write was refused"
		}
	}
	return ""
}

// brief is a duration with as many digits as a reader needs.
func brief(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
