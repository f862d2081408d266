package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const (
	ttyInterval  = time.Second
	fileInterval = 10 * time.Second // a log should stay short
)

// showProgress prints how far the campaign is, until it is stopped.
func (c *campaign) showProgress() (stop func()) {
	interval, start, end := fileInterval, "", "\n"
	if isTerminal(c.out) {
		interval, start, end = ttyInterval, "\r\x1b[K", ""
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		watch := verify.NewWatch()
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				attempts := c.journal.Attempts()
				fmt.Fprintf(c.out, "%s%4.0fs  faults %3d  attempts %6d  in flight %3d  violations %d  %v%s", start, c.elapsed().Seconds(), c.count.Load(),
					len(attempts), c.wire.InFlight(), watch.Look(attempts), c.phase.Load(), end)
			case <-done:
				fmt.Fprint(c.out, start)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
