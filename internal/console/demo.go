package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
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

// story is what the demonstration that runs, or ran last, has shown so far.
type story struct {
	demo
	Running bool
	Lines   []storyLine
	Checks  []check

	Took    time.Duration
	Failure error // why it could not be shown

	began time.Time
}

// storyLine is something that happened.
type storyLine struct {
	At   string // seconds since the beginning
	Text string
}

// check compares the books with what they should say.
type check struct{ What, Got, Want string }

// OK reports whether the check holds.
func (c check) OK() bool { return c.Got == c.Want }

// Passed reports whether every check holds.
func (s story) Passed() bool {
	return s.Failure == nil && !slices.ContainsFunc(s.Checks, func(c check) bool { return !c.OK() })
}

// demonstrate starts a demonstration.
func (s *Server) demonstrate(_ context.Context, form url.Values) (string, error) {
	i := slices.IndexFunc(demos, func(d demo) bool { return d.Name == form.Get("demo") })
	if i < 0 {
		return "", errors.New("there is no such demonstration")
	}
	if err := s.begin(demos[i]); err != nil {
		return "", err
	}
	s.background.Go(func() { s.perform(demos[i]) })
	return "It begins: " + demos[i].Title, nil
}

// begin fails if another demonstration runs. The attempts of the one before are forgotten.
func (s *Server) begin(d demo) (err error) {
	s.change(func(now *state) {
		if now.Story.Running {
			err = fmt.Errorf("%q is still running", now.Story.Title)
			return
		}
		now.Story = story{demo: d, began: time.Now(), Running: true}
		now.Attempts = slices.DeleteFunc(now.Attempts, func(a *attempt) bool { return a.By == demonstration })
	})
	return err
}

// perform runs a demonstration on a deployment that is well, and leaves it well.
func (s *Server) perform(d demo) {
	ctx, cancel := context.WithTimeoutCause(s.stopping, demoTimeout, errors.New("it takes too long"))
	defer cancel()
	a := &act{Server: s}
	a.ctx, a.fail = context.WithCancelCause(ctx)
	_, err := s.mend(ctx)
	a.must(err)
	d.run(a)
	failure := context.Cause(a.ctx)
	a.fail(nil)
	_, err = s.mend(context.WithoutCancel(ctx))
	s.end(cmp.Or(failure, err))
}

func (s *Server) end(failure error) {
	s.change(func(now *state) {
		now.Story.Running, now.Story.Failure, now.Story.Took = false, failure, time.Since(now.Story.began)
	})
}

// act is a demonstration that is under way. Its first error ends its context, and the steps after
// it do nothing.
type act struct {
	*Server
	ctx  context.Context
	fail context.CancelCauseFunc
}

// must ends the demonstration, if there is an error.
func (a *act) must(err error) {
	if err != nil {
		a.fail(err)
	}
}

// tell adds to the story.
func (a *act) tell(more func(*story)) {
	a.change(func(now *state) {
		if a.ctx.Err() == nil {
			more(&now.Story)
		}
	})
}

// say adds a line to the story.
func (a *act) say(format string, args ...any) {
	a.tell(func(is *story) {
		at := fmt.Sprintf("%.1f s", time.Since(is.began).Seconds())
		is.Lines = append(is.Lines, storyLine{at, fmt.Sprintf(format, args...)})
	})
}

// check adds a line to the verdict.
func (a *act) check(what string, got, want any) {
	a.tell(func(is *story) { is.Checks = append(is.Checks, check{what, fmt.Sprint(got), fmt.Sprint(want)}) })
}

// command does one command of the switchboard.
func (a *act) command(command string) {
	if a.ctx.Err() == nil {
		_, err := a.Server.command(a.ctx, command)
		a.must(err)
	}
}
