package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	ttyInterval  = time.Second
	fileInterval = 5 * time.Second // a log should stay short
)

// progress shows how far the load is: one line that is redrawn on a terminal,
// a line now and then elsewhere.
type progress struct {
	out     io.Writer
	tty     bool
	cfg     config
	started time.Time
	ticker  *time.Ticker
}

func newProgress(out io.Writer, cfg config) *progress {
	p := &progress{out: out, tty: isTerminal(out), cfg: cfg, started: time.Now()}
	interval := fileInterval
	if p.tty {
		interval = ttyInterval
	}
	p.ticker = time.NewTicker(interval)
	return p
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) tick() <-chan time.Time { return p.ticker.C }

func (p *progress) stop() { p.ticker.Stop() }

func (p *progress) line(o *outcome) {
	start, end := "", "\n"
	if p.tty {
		start, end = "\r\x1b[K", ""
	}
	total := o.total
	p99 := time.Duration(0)
	if total.Requests > 0 {
		p99 = total.metrics.Latencies.Quantile(0.99)
	}
	fmt.Fprintf(p.out, "%s%4.0fs of %s  answered %d of %d  ok %d  unexpected %d  p99 %.1f ms%s", start,
		time.Since(p.started).Seconds(), p.cfg.Duration, total.Requests, p.cfg.requests(), total.OK, total.Unexpected, ms(p99), end)
}

// last is the final line, which stays.
func (p *progress) last(o *outcome) {
	p.line(o)
	if p.tty {
		fmt.Fprintln(p.out)
	}
}
