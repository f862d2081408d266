package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// slowStep is how often a step that isn't done yet gets a line to say so: a first build takes a
// minute.
const slowStep = 5 * time.Second

// nameWidth is the length of the longest name, postgres-standby.
const nameWidth = 16

// step does something, and prints a line when it is done: name, address, state, seconds. If it
// takes long it gets lines before. The error itself comes later.
func (s *Stack) step(name, where string, do func() (state string, err error)) error {
	begun := time.Now()
	ctx, stop := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		for wait.Pause(ctx, slowStep) == nil {
			s.printf("  %-*s %-17s … %.0f s\n", nameWidth, name, where, time.Since(begun).Seconds())
		}
	})
	state, err := do()
	stop()
	telling.Wait()
	switch {
	case interrupted(err):
		state = "interrupted"
	case err != nil:
		state = "FAILED"
	}
	s.printf("  %-*s %-17s %-28s %5.1f s\n", nameWidth, name, where, state, time.Since(begun).Seconds())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// printf shows something to the user; if the output is closed, the work goes on. One call is one
// write: the lines of parallel steps don't mix.
func (s *Stack) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.options.Out, format, args...)
}

// interrupted reports whether the user pressed Ctrl-C, or the like.
func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, syscall.EINTR)
}
