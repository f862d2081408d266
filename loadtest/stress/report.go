package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/oncepay/oncepay/loadtest/audit"
	"github.com/oncepay/oncepay/loadtest/report"
)

// maxShown violations are printed; the JSON has all.
const maxShown = 20

// errOff says that the run is over and something is wrong.
var errOff = errors.New("not everything is as it must be")

// summary is the JSON report.
type summary struct {
	Run        string            `json:"run"`
	Rate       int               `json:"rate_per_second"`
	Duration   string            `json:"duration"`
	Rows       []*row            `json:"kinds"`
	Classes    []*row            `json:"classes"` // the same requests, by what was answered
	Effects    map[string]int    `json:"effects"` // distinct keys that were acknowledged
	Pace       punctual          `json:"pace"`
	Memory     map[string]uint64 `json:"peak_resident_bytes"`
	Events     *audit.Events     `json:"events,omitempty"` // lags in nanoseconds
	Violations []audit.Violation `json:"findings"`
	Unread     string            `json:"unread,omitempty"` // why nothing was compared
	Passed     bool              `json:"passed"`
}

// conclude prints the result, writes the files, and returns an error unless all
// is well.
func conclude(cfg config, o *outcome, out io.Writer) error {
	s := summarize(cfg, o)
	s.print(out)
	if err := writeFiles(cfg, o, s, out); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	switch {
	case o.unread != nil:
		return o.unread
	case !s.Passed:
		return errOff
	}
	return nil
}

func summarize(cfg config, o *outcome) summary {
	s := summary{
		Run: cfg.run, Rate: cfg.Rate, Duration: report.Short(cfg.Duration),
		Effects: map[string]int{}, Pace: o.punctual.summary(), Memory: o.memory, Events: o.events, Violations: o.violations,
	}
	for _, k := range kinds {
		s.Rows = append(s.Rows, o.rows[k])
	}
	s.Rows = append(s.Rows, o.total)
	for _, c := range o.classes {
		s.Classes = append(s.Classes, c.row)
	}
	for _, r := range slices.Concat(s.Rows, s.Classes) {
		r.close()
	}
	for _, op := range []audit.Operation{audit.Order, audit.Card, audit.Wallet} {
		s.Effects[string(op)] = o.answers.Acknowledged(op)
	}
	if o.unread != nil {
		s.Unread = o.unread.Error()
	}
	s.Passed = o.unread == nil && len(s.Violations) == 0 && s.Pace.Kept && o.total.Requests == cfg.requests()
	return s
}

func (s summary) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%-20s\trequests\tok\tunexpected\tnew\treplayed\t409\t422\tp50 ms\tp95 ms\tp99 ms\tmax ms\t\n", "kind")
	for _, r := range s.Rows {
		fmt.Fprintf(table, "%-20s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Kind, r.Requests, r.OK, r.Unexpected,
			r.New, r.Replayed, r.InProgress, r.Refused, r.P50, r.P95, r.P99, r.Max)
	}
	_ = table.Flush() // out is a terminal
	fmt.Fprintf(out, "\nkeys     %d orders, %d card payments, %d wallet payments acknowledged\n",
		s.Effects[string(audit.Order)], s.Effects[string(audit.Card)], s.Effects[string(audit.Wallet)])
	fmt.Fprintf(out, "rate     %.1f/s of %.0f/s; requests were sent late by %.1f ms (p99), %.1f ms (max)\n",
		s.Pace.Achieved, s.Pace.Asked, s.Pace.P99, s.Pace.Max)
	if !s.Pace.Kept {
		fmt.Fprintln(out, "         the attacker could not keep the rate: these latencies are those of a gentler load")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Memory)) {
		fmt.Fprintf(out, "memory   %s %.1f MiB resident at its peak\n", name, float64(s.Memory[name])/(1<<20))
	}
	s.printEvents(out)
	s.printVerdict(out)
}

func (s summary) printEvents(out io.Writer) {
	if s.Events == nil {
		fmt.Fprintln(out, "events   not measured")
		return
	}
	fmt.Fprintf(out, "events   %d written, %d outstanding\n", s.Events.Written, s.Events.Outstanding)
	lag := s.Events.Consumed
	fmt.Fprintf(out, "         effective after %.1f ms (p50), %.1f ms (p99), %.1f ms (max)\n", ms(lag.P50), ms(lag.P99), ms(lag.Max))
}

func (s summary) printVerdict(out io.Writer) {
	if s.Passed {
		fmt.Fprintln(out, "verdict  passed: one effect and one answer for every key; orders, payments, charges, wallets and stock add up exactly")
		return
	}
	byRule := map[audit.Rule]int{}
	for _, f := range s.Violations {
		byRule[f.Rule]++
	}
	fmt.Fprintf(out, "verdict  FAILED: %d violations %s\n", len(s.Violations), s.Unread)
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		fmt.Fprintf(out, "  %6d  %s\n", byRule[rule], rule)
	}
	for _, f := range s.Violations[:min(maxShown, len(s.Violations))] {
		fmt.Fprintf(out, "  - %s\n", f)
	}
}

func writeFiles(cfg config, o *outcome, s summary, out io.Writer) error {
	if err := os.MkdirAll(cfg.Out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(cfg.Out, "stress-"+cfg.run)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	c := newChart(o.classes, cfg.Duration)
	draw := func(out io.Writer) error { return drawPicture(out, s, c) }
	if err := errors.Join(create(base+".html", newPage(s, c).write), create(base+".png", draw)); err != nil {
		return err
	}
	fmt.Fprintf(out, "report   %s.html\npicture  %s.png\ndata     %s.json\n", base, base, base)
	return nil
}

func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
