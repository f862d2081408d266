package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// demoTimeout bounds a demonstration. With the lease of production the longest takes 25 seconds.
const demoTimeout = 60 * time.Second

// A demo shows one promise: it says what is about to happen, does it, and compares the books.
type demo struct {
	Name, Title string
	Announce    string // what is about to happen
	Expect      string // what one should see
	run         func(ctx context.Context, s *Server, on *stage) error
}

// stage is the demonstration that runs, or ran last. Safe for concurrent use.
type stage struct {
	mu      sync.Mutex
	demo    demo
	began   time.Time
	took    time.Duration
	running bool
	lines   []storyLine
	checks  []check
	err     error
}

// storyLine is something that happened.
type storyLine struct {
	At   string // seconds since the beginning
	Text string
}

// check compares the books with what they should say.
type check struct {
	What, Got, Want string
	OK              bool
}

// begin fails if another demonstration runs.
func (st *stage) begin(d demo) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.running {
		return fmt.Errorf("%q is still running", st.demo.Title)
	}
	st.demo, st.began, st.running, st.took = d, time.Now(), true, 0
	st.lines, st.checks, st.err = nil, nil, nil
	return nil
}

func (st *stage) end(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.running, st.err, st.took = false, err, time.Since(st.began)
}

func (st *stage) isRunning() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.running
}

// say adds a line to the story.
func (st *stage) say(format string, args ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lines = append(st.lines, storyLine{fmt.Sprintf("%.1f s", time.Since(st.began).Seconds()), fmt.Sprintf(format, args...)})
}

// check adds a line to the verdict.
func (st *stage) check(what string, got, want any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	c := check{What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
	c.OK = c.Got == c.Want
	st.checks = append(st.checks, c)
}

// stageView is what the page shows of a demonstration.
type stageView struct {
	Shown   bool
	Title   string
	Running bool
	Lines   []storyLine
	Checks  []check
	Verdict string
	Passed  bool
}

func (st *stage) view() stageView {
	st.mu.Lock()
	defer st.mu.Unlock()
	v := stageView{Shown: st.demo.Name != "", Title: st.demo.Title, Running: st.running,
		Lines: slices.Clone(st.lines), Checks: slices.Clone(st.checks)}
	if v.Running {
		return v
	}
	v.Passed = st.err == nil && !slices.ContainsFunc(v.Checks, func(c check) bool { return !c.OK })
	switch {
	case st.err != nil:
		v.Verdict = "It could not be shown: " + st.err.Error()
	case v.Passed:
		v.Verdict = fmt.Sprintf("The promise held. The books agree, after %.0f s.", st.took.Seconds())
	default:
		v.Verdict = "The promise did not hold. See the books below."
	}
	return v
}

// serveDemo starts a demonstration.
func (s *Server) serveDemo(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("demo")
	i := slices.IndexFunc(demos, func(d demo) bool { return d.Name == name })
	if i < 0 {
		http.Error(w, "There is no such demonstration.", http.StatusBadRequest)
		return
	}
	d := demos[i]
	if err := s.stage.begin(d); err != nil {
		respond(w, "", err)
		return
	}
	s.journal.drop(demonstration)
	s.background.Go(func() { s.perform(d) })
	respond(w, "It begins: "+d.Title, nil)
}

// perform runs a demonstration on a deployment that is well, and leaves it well.
func (s *Server) perform(d demo) {
	ctx, cancel := context.WithTimeout(s.stopping, demoTimeout)
	defer cancel()
	done, err := s.mend(ctx)
	if len(done) > 0 {
		s.stage.say("Mended first: %s.", strings.Join(done, ", "))
	}
	if err == nil {
		err = d.run(ctx, s, &s.stage)
	}
	if _, mending := s.mend(context.WithoutCancel(ctx)); err == nil {
		err = mending
	}
	s.stage.end(err)
}
