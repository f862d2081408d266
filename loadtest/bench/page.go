package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// levers ends the page. It is written by hand, and no .md: its links are those of the page.
//
//go:embed levers.txt
var levers string

// section is what a part found.
type section struct {
	title  string
	text   string // lines of Markdown
	tables []table
	plots  []picture
}

// picture is a plot in a file of its own.
type picture struct{ path, alt string }

// write writes the page.
func write(cfg config, here machine, began time.Time, sections []section) error {
	if err := os.MkdirAll(filepath.Dir(cfg.page), 0o755); err != nil {
		return err
	}
	return os.WriteFile(cfg.page, []byte(pageOf(cfg, here, began, sections)), 0o644)
}

func pageOf(cfg config, here machine, began time.Time, sections []section) string {
	var text strings.Builder
	fmt.Fprintf(&text, `# Benchmark

Made by %s on %s, in %s.

- Machine: %s.
- Load of the machine when it began, of others: %s. Above zero, rates and latencies are worse than they would be alone.
- Figures are the median of the rounds (%d, of %s for each measurement), with the extremes in brackets. The systems that are
  compared are measured in turn in each round.
- CPU is user and system time of all threads and child processes, from /proc, in µs per request.
- The client runs on the same cores, so rates are those of this machine with everything on it.
`, "`"+strings.Join(append([]string{"go run ./loadtest/bench"}, cfg.args...), " ")+"`", began.Format(time.DateOnly), time.Since(began).Round(time.Second), here.text, here.load, cfg.rounds, cfg.step)
	for _, s := range sections {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", s.title, s.text)
		for _, t := range s.tables {
			fmt.Fprintf(&text, "\n`%s`:\n\n%s", t.command, t)
		}
		for _, p := range s.plots {
			path, err := filepath.Rel(filepath.Dir(cfg.page), p.path)
			if err != nil {
				path = p.path
			}
			fmt.Fprintf(&text, "\n![%s](%s)\n", p.alt, filepath.ToSlash(path))
		}
	}
	text.WriteString("\n" + levers)
	return text.String()
}
