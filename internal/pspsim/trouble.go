package pspsim

import (
	"net/http"
	"slices"
	"sync"
)

// Trouble is what the provider does to everybody, whatever their tokens, from PUT /v1/trouble to
// DELETE /v1/trouble or the next start.
type Trouble struct {
	Answers  string `json:"answers,omitempty"`
	Webhooks string `json:"webhooks,omitempty"`
}

// What Trouble's fields may say besides nothing.
const (
	AnswersFail       = "fail"        // 500, and nothing was done
	AnswersFailedLate = "fail_late"   // 500, although it was done
	AnswersGarbage    = "garbage"     // done, and answered by something that is no answer
	WebhooksRepeated  = "repeated"    // sent at once, then again with those before, the newest first
	WebhooksLost      = "lost"        // given up without a try
	WebhooksDelayed   = "delayed"     // kept until the trouble is over
	garbage           = "<html>ok\n{" // neither JSON nor all of anything
)

// recentEvents is how many are sent again with each new one.
const recentEvents = 6

func (t Trouble) valid() bool {
	return slices.Contains([]string{"", AnswersFail, AnswersFailedLate, AnswersGarbage}, t.Answers) &&
		slices.Contains([]string{"", WebhooksRepeated, WebhooksLost, WebhooksDelayed}, t.Webhooks)
}

// troubles is the trouble of the moment. Safe for concurrent use.
type troubles struct {
	mu      sync.Mutex
	is      Trouble
	changed chan struct{} // closed when it does
	met     int           // answers and events that were spoilt
	recent  []entry       // whose events may be repeated
}

func newTroubles() *troubles { return &troubles{changed: make(chan struct{})} }

func (t *troubles) set(to Trouble) (met int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	met = t.met
	t.is, t.changed, t.met, t.recent = to, make(chan struct{}), 0, nil
	return met
}

func (t *troubles) metSoFar() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.met
}

// answers reports whether answers are spoilt in this way, and counts it.
func (t *troubles) answers(way string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count(t.is.Answers == way)
}

// webhooks is the same for events.
func (t *troubles) webhooks(way string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count(t.is.Webhooks == way)
}

func (t *troubles) count(spoilt bool) bool {
	if spoilt {
		t.met++
	}
	return spoilt
}

// again returns the events that are to be repeated after e's, the newest first, e's own among them.
func (t *troubles) again(e entry) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent = append([]entry{e}, t.recent...)
	t.recent = t.recent[:min(len(t.recent), recentEvents)]
	return t.recent // it is replaced, and never changed
}

// delay returns what is closed when an event that is due may leave.
func (t *troubles) delay() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count(t.is.Webhooks == WebhooksDelayed) {
		return t.changed
	}
	now := make(chan struct{})
	close(now)
	return now
}

func (s *Server) startTrouble(w http.ResponseWriter, r *http.Request) {
	var to Trouble
	if err := decode(w, r, &to); err != nil {
		s.refuse(w, err)
		return
	}
	if !to.valid() {
		s.refuse(w, invalid("There is no such trouble."))
		return
	}
	s.troubles.set(to)
	s.write(w, http.StatusOK, to)
}

// showTrouble answers with how many answers and events it has met so far.
func (s *Server) showTrouble(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, map[string]int{"met": s.troubles.metSoFar()})
}

// endTrouble answers with how many it met in all.
func (s *Server) endTrouble(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, map[string]int{"met": s.troubles.set(Trouble{})})
}
