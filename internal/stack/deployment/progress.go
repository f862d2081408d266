package deployment

import (
	"context"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// slowStep is how often a step that isn't done yet gets a line to say so: a first build takes a
// minute.
const slowStep = 5 * time.Second

// minNameWidth lets columns look the same wherever names are short.
const minNameWidth = 9

// Step is a line of progress that is printed when it is done: name, address, state, seconds.
type Step struct {
	d     *Deployment
	name  string
	where string
	begun time.Time
	stop  func()
}

// Step begins a step. One that takes long gets lines before it is done.
func (d *Deployment) Step(name, where string) Step {
	ctx, stop := context.WithCancel(context.Background())
	t := Step{d: d, name: name, where: where, begun: time.Now(), stop: stop}
	go func() {
		for wait.Pause(ctx, slowStep) == nil {
			d.Printf("  %-*s %-17s … %.0f s\n", d.NameWidth(), name, where, time.Since(t.begun).Seconds())
		}
	}()
	return t
}

// End prints the step's line, with the state or that it didn't work. The error itself comes later.
func (t Step) End(state string, err error) error {
	t.stop()
	switch {
	case Interrupted(err):
		state = "interrupted"
	case err != nil:
		state = "FAILED"
	}
	t.d.Printf("  %-*s %-17s %-28s %5.1f s\n", t.d.NameWidth(), t.name, t.where, state, time.Since(t.begun).Seconds())
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// NameWidth is how much room the longest of the services' names takes.
func (d *Deployment) NameWidth() int {
	width := minNameWidth
	for _, name := range d.Services() {
		width = max(width, len(name))
	}
	return width
}

// Printf shows something to the user; if the output is closed, the work goes on. One call is one
// write: the lines of parallel steps don't mix.
func (d *Deployment) Printf(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format, args...) }
