package report

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	ttyInterval  = time.Second
	fileInterval = 10 * time.Second // a log should stay short
)

// Progress prints the line again and again, until it is stopped: on a terminal each in place of the
// last one. The line is asked for in a goroutine of its own.
func Progress(out io.Writer, line func() string) (stop func()) {
	interval, start, end := fileInterval, "", "\n"
	if isTerminal(out) {
		interval, start, end = ttyInterval, "\r\x1b[K", ""
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprint(out, start, line(), end)
			case <-done:
				fmt.Fprint(out, start)
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
