package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// demoTimeout bounds a demonstration. With the lease of production the longest takes 25 seconds.
const demoTimeout = 60 * time.Second

// A demo shows one promise: it says what is about to happen, does it, and compares the books.
type demo struct {
	Name, Title string
	Announce    string // what is about to happen
	Expect      string // what one should see
	run         func(*act)
}

// act is a demonstration that is under way. Its first error ends it: the steps after it do nothing.
type act struct {
	*Server
	ctx context.Context
	err error
}

func (a *act) step(do func() error) {
	if a.err == nil {
		a.err = do()
	}
}

// say adds a line to the story, unless it was said just now.
func (a *act) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.stage.change(func(is *story) {
		if last := len(is.Lines) - 1; a.err == nil && (last < 0 || is.Lines[last].Text != text) {
			is.Lines = append(is.Lines, storyLine{fmt.Sprintf("%.1f s", time.Since(is.began).Seconds()), text})
		}
	})
}

// check adds a line to the verdict.
func (a *act) check(what string, got, want any) {
	c := check{What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
	c.OK = c.Got == c.Want
	a.stage.change(func(is *story) {
		if a.err == nil {
			is.Checks = append(is.Checks, c)
		}
	})
}

// command does one command of the switchboard.
func (a *act) command(command string) {
	a.step(func() error { _, err := a.Server.command(a.ctx, command); return err })
}

// read gets a resource of the shop.
func (a *act) read(path string, resource any) {
	a.step(func() error { return a.patient.call(a.ctx, http.MethodGet, path, "", nil, resource) })
}

// stage is the demonstration that runs, or ran last. Safe for concurrent use.
type stage struct{ guarded[story] }

// story is what a demonstration has shown so far.
type story struct {
	demo
	Running bool
	Lines   []storyLine
	Checks  []check

	began time.Time
	took  time.Duration
	err   error
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
func (st *stage) begin(d demo) (err error) {
	st.change(func(is *story) {
		if is.Running {
			err = fmt.Errorf("%q is still running", is.Title)
			return
		}
		*is = story{demo: d, began: time.Now(), Running: true}
	})
	return err
}

func (st *stage) end(err error) {
	st.change(func(is *story) { is.Running, is.err, is.took = false, err, time.Since(is.began) })
}

// Passed reports whether every check holds.
func (s story) Passed() bool {
	return s.err == nil && !slices.ContainsFunc(s.Checks, func(c check) bool { return !c.OK })
}

// Verdict is the end of the story; before it, there is none.
func (s story) Verdict() string {
	switch {
	case s.Running:
		return ""
	case s.err != nil:
		return "It could not be shown: " + s.err.Error()
	case s.Passed():
		return fmt.Sprintf("The promise held. The books agree, after %.0f s.", s.took.Seconds())
	}
	return "The promise did not hold. See the books below."
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
	a := &act{Server: s, ctx: ctx}
	done, err := s.mend(ctx)
	if a.err = err; len(done) > 0 {
		a.say("Mended first: %s.", strings.Join(done, ", "))
	}
	d.run(a)
	_, err = s.mend(context.WithoutCancel(ctx))
	s.stage.end(cmp.Or(a.err, err))
}
