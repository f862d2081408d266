package pspsim

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// trouble is what the provider does to everybody, whatever their tokens, from PUT /v1/trouble to
// DELETE /v1/trouble or the next start. There is one at a time.
type trouble struct {
	Answers  string `json:"answers,omitempty"`
	Webhooks string `json:"webhooks,omitempty"`
}

var (
	answersFail     = trouble{Answers: "fail"}      // 500, and nothing was done
	answersFailLate = trouble{Answers: "fail_late"} // 500, although it was done
	answersGarbage  = trouble{Answers: "garbage"}   // done, and answered by something that is no answer
	eventsRepeated  = trouble{Webhooks: "repeated"} // sent at once, then again with those before, the newest first
	eventsLost      = trouble{Webhooks: "lost"}     // given up without a try
	eventsDelayed   = trouble{Webhooks: "delayed"}  // kept until the trouble is over
	// bothHeld also keeps the answer to a key's first arrival. Later arrivals are answered at once.
	bothHeld = trouble{Answers: "held", Webhooks: "delayed"}

	knownTroubles = []trouble{answersFail, answersFailLate, answersGarbage, eventsRepeated, eventsLost, eventsDelayed, bothHeld}
)

const (
	garbage = "<html>ok\n{" // neither JSON nor all of anything
	// recentEvents is how many are sent again with each new one.
	recentEvents = 6
)

// troubles is the trouble of the moment. Safe for concurrent use.
type troubles struct {
	mu      sync.Mutex
	is      trouble
	changed chan struct{} // closed when it does
	met     int           // answers and events that were spoilt
	recent  []entry       // whose events may be repeated
}

func newTroubles() *troubles { return &troubles{changed: make(chan struct{})} }

// change returns how many answers and events the trouble so far has met.
func (t *troubles) change(to trouble) (met int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	met = t.met
	close(t.changed)
	t.is, t.changed, t.met, t.recent = to, make(chan struct{}), 0, nil
	return met
}

// meets reports whether this is the trouble of the moment, and counts what it spoils.
func (t *troubles) meets(one trouble) bool { return t.during(one) != nil }

// during is meets for any of these, with what is closed when the trouble is over, or nil.
func (t *troubles) during(these ...trouble) (over <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(these, t.is) {
		return nil
	}
	t.met++
	return t.changed
}

// outlast waits until the trouble of the moment is over, if it is one of these. Its error is the
// context's.
func (t *troubles) outlast(ctx context.Context, these ...trouble) error {
	over := t.during(these...)
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again returns the events that are to be repeated after e's, the newest first, e's own among them.
func (t *troubles) again(e entry) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent = append([]entry{e}, t.recent...)
	t.recent = t.recent[:min(len(t.recent), recentEvents)]
	return t.recent // it is replaced, and never changed
}

// trouble begins one (PUT) or ends it (DELETE), and answers with how many answers and events the
// one so far has met.
func (s *Server) trouble(r *http.Request) (int, any, error) {
	var to trouble
	if r.Method == http.MethodPut {
		if err := decode(r, &to); err != nil {
			return 0, nil, err
		}
		if !slices.Contains(knownTroubles, to) {
			return 0, nil, invalid("There is no such trouble.")
		}
	}
	return http.StatusOK, map[string]int{"met": s.troubles.change(to)}, nil
}
