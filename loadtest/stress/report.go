package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

// report prints what was found out, and writes the page and the JSON.
func (l *load) report(out io.Writer) error {
	page, drawn := l.page()
	base := filepath.Join(l.Out, l.shop.Run)
	fmt.Fprintf(out, "\n%s\n%s\n%s\n%sreport: %s.html and .json\n", page.Figures, page.Legend, page.Verdict, page.Evidence, base)
	raw, err := json.MarshalIndent(map[string]any{"run": l.shop.Run, "requests": l.rows, "event_lag_ns": l.lag,
		"resident_bytes": l.memory, "promises": page.Promises, "violations": l.found}, "", "  ")
	if page.Broken {
		err = errors.Join(err, errors.New("promises were broken"))
	}
	return errors.Join(drawn, err, os.MkdirAll(l.Out, 0o755),
		os.WriteFile(base+".json", raw, 0o644), page.Write(base+".html"))
}

// page has latencies over time, the figures and the promises.
func (l *load) page() (page report.Page, err error) {
	page = report.Page{Title: fmt.Sprintf("oncepay at %d requests a second for %s", l.Rate, l.Duration),
		Verdict: "Passed: every key had one effect and one answer.", Broken: len(l.found) > 0,
		Legend: fmt.Sprintf("%.1f requests a second were sent, also while others waited for an answer. "+
			"From a change to the effect of its event: p50 %s, p99 %s, slowest %s. A replica had %.0f MiB in the end.",
			l.rows[all].Rate, l.lag[0], l.lag[1], l.lag[2], l.memory/(1<<20)),
		Promises: report.Promises(promises, l.found), Figures: l.figures(),
		Command: fmt.Sprintf("task test:stress:all RATE=%d DURATION=%s", l.Rate, l.Duration),
		Notes:   []string{fmt.Sprint(time.Now().Format(time.RFC1123), ", ", runtime.NumCPU(), " cores")}}
	if page.Broken {
		page.Verdict = fmt.Sprintf("Failed: %d violations.", len(l.found))
	}
	for _, v := range l.found[:min(20, len(l.found))] { // the JSON has all
		page.Evidence += fmt.Sprintf("  - %s\n", v)
	}
	first := func(a journal.Attempt) bool { return a.Outcome() == journal.Succeeded && !a.Replayed }
	again := func(a journal.Attempt) bool { return a.Replayed }
	lines := []report.Line{{Name: "first requests", Of: first}, {Name: "replays", Of: again}}
	page.Picture, err = report.Draw(l.attempts, lines, nil)
	return page, err
}

// figures are vegeta's metrics by kind.
func (l *load) figures() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "kind\trequests\t201\t409\t422\tp50 ms\tp95 ms\tp99 ms\tmax ms\t")
	for _, name := range slices.Sorted(maps.Keys(l.rows)) {
		r := l.rows[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t", name, r.Requests, r.StatusCodes["201"], r.StatusCodes["409"], r.StatusCodes["422"])
		for _, took := range []time.Duration{r.Latencies.P50, r.Latencies.P95, r.Latencies.P99, r.Latencies.Max} {
			fmt.Fprintf(table, "%.1f\t", report.Milliseconds(took))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // into memory
	return text.String()
}
