package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

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
	Name    string
	Began   time.Time
	Took    time.Duration
	Failed  bool
	Result  string // of the request: how its idempotency check ended
}

// worker is the replica that was last seen working on the attempt, or "".
func (a attempt) worker() (replica string) {
	if n := len(a.Calls); n > 0 {
		replica = a.Calls[n-1].Replica
	}
	return replica
}

// dead are the replicas that began the attempt and never told its end, although the client has an
// answer, or will have none.
func (a attempt) dead() []string {
	ended, began := map[string]bool{}, []string{}
	for _, c := range a.Calls {
		if c.To == "" {
			ended[c.Replica] = true
		} else if !slices.Contains(began, c.Replica) {
			began = append(began, c.Replica)
		}
	}
	// The last spans come some moments after the answer.
	complete := a.Done && time.Since(a.Began.Add(a.Took)) > 2*time.Second
	return slices.DeleteFunc(began, func(replica string) bool { return ended[replica] || !complete || replica == a.ServedBy })
}

// Outcome is what the client got, in words.
func (a attempt) Outcome() string {
	outcome := strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Code))
	switch {
	case !a.Done:
		return "waiting for an answer"
	case a.Status == 0:
		return "no answer"
	case a.Replay:
		return fmt.Sprintf("%d, replayed by %s", a.Status, a.replayer())
	case a.Code != "" && a.RetryAfter != "":
		return outcome + ", retry after " + a.RetryAfter + " s"
	}
	return outcome
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
	return titles[last]
}

// Lost says which fence stopped an attempt, or "".
func (a attempt) Lost() string {
	for _, c := range a.Calls {
		if c.To == "" && c.Result == "lost" {
			return c.Replica + " lost its lease: another attempt decides, and its own write was refused"
		}
	}
	return ""
}

// Tone is how good the outcome is for the client.
func (a attempt) Tone() string {
	switch {
	case !a.Done:
		return "wait"
	case a.Replay:
		return "replay"
	case a.Status >= 200 && a.Status < 300:
		return "good"
	case a.Status == 0 || a.RetryAfter != "" || a.Status >= 500:
		return "again"
	}
	return "refused"
}

// Lasted is the time until the answer.
func (a attempt) Lasted() string { return brief(a.Took) }

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
