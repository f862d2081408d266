package deployment

import (
	"fmt"
	"strings"
	"time"
)

// slowStep is when a step that isn't done yet gets a line to say so: a first build takes a minute.
const slowStep = 5 * time.Second

// minNameWidth lets columns look the same wherever names are short.
const minNameWidth = 9

// Step is a line of progress that is printed when it is done: name, address, state, seconds.
type Step struct {
	d     *Deployment
	name  string
	where string
	begun time.Time
	slow  *time.Timer
}

// Step begins a step. One that takes long gets a line before it is done.
func (d *Deployment) Step(name, where string) Step {
	t := Step{d: d, name: name, where: where, begun: time.Now()}
	going := t // the timer's own: the next line writes t
	t.slow = time.AfterFunc(slowStep, func() { going.Going("") })
	return t
}

// Going prints how far a step that takes long has come.
func (t Step) Going(how string) {
	t.d.Printf("%s\n", strings.TrimRight(fmt.Sprintf("  %-*s %-17s … %s", t.d.NameWidth(), t.name, t.where, how), " "))
}

// Part is a step of its own that began with this one.
func (t Step) Part(name, where string) Step {
	t.name, t.where = name, where
	return t
}

// Stop ends the step without a line.
func (t Step) Stop() { t.slow.Stop() }

// Done prints the step's line.
func (t Step) Done(state string) {
	t.Stop()
	t.d.Printf("  %-*s %-17s %-28s %5.1f s\n", t.d.NameWidth(), t.name, t.where, state, time.Since(t.begun).Seconds())
}

// NameWidth is how much room the longest of the services' names takes.
func (d *Deployment) NameWidth() int {
	width := 0
	for _, name := range d.Services() {
		width = max(width, len(name))
	}
	return max(width, minNameWidth)
}

// Printf shows something to the user; if the output is closed, the work goes on. One call is one
// write: the lines of parallel steps don't mix.
func (d *Deployment) Printf(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format, args...) }

// End is Done, or, if there is an error, prints that the step didn't work. The error itself comes
// later.
func (t Step) End(state string, err error) error {
	switch {
	case err == nil:
		t.Done(state)
		return nil
	case Interrupted(err):
		t.Done("interrupted")
	default:
		t.Done("FAILED")
	}
	return fmt.Errorf("%s: %w", t.name, err)
}
