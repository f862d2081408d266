package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
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
	ctx, cancel := context.WithCancel(context.Background())
	var printing sync.WaitGroup
	printing.Go(func() {
		for wait.Pause(ctx, interval) == nil {
			fmt.Fprint(out, start, line(), end)
		}
		fmt.Fprint(out, start)
	})
	return func() { cancel(); printing.Wait() }
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
