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

	"github.com/oncepay/oncepay/loadtest/books"
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
	Effects    map[operation]int `json:"effects"` // distinct keys that were acknowledged
	Pace       punctual          `json:"pace"`
	Memory     map[string]uint64 `json:"peak_resident_bytes"`
	Events     *published        `json:"events,omitempty"` // lags in nanoseconds
	Violations []books.Violation `json:"findings"`
	Unread     string            `json:"unread,omitempty"` // why nothing was compared
	Passed     bool              `json:"passed"`
}

// conclude prints the result, writes the files, and returns an error unless all
// is well.
func conclude(cfg config, run string, o *outcome, out io.Writer) error {
	s := summarize(cfg, run, o)
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

func summarize(cfg config, run string, o *outcome) summary {
	s := summary{
		Run: run, Rate: cfg.Rate, Duration: report.Short(cfg.Duration),
		Effects: map[operation]int{}, Pace: o.punctual.summary(), Memory: o.memory, Events: o.events, Violations: o.violations,
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
	for op, entries := range o.answers.kept() {
		s.Effects[op] = len(entries)
	}
	if o.unread != nil {
		s.Unread = o.unread.Error()
	}
	s.Passed = o.unread == nil && len(s.Violations) == 0 && s.Pace.Kept && o.total.Requests == cfg.requests()
	return s
}

// promises are those that were checked, and every rule that is broken.
func (s summary) promises() (checked []report.Promise) {
	wanted := slices.Clone(ofAnswers)
	if s.Unread == "" {
		wanted = append(wanted, ofBooks...)
	}
	if s.Events != nil {
		wanted = append(wanted, inTime)
	}
	broken := s.broken()
	for _, rule := range slices.Sorted(maps.Keys(broken)) {
		if !slices.Contains(wanted, rule) {
			wanted = append(wanted, rule)
		}
	}
	for _, rule := range wanted {
		checked = append(checked, report.Promise{Text: string(rule), Broken: broken[rule]})
	}
	return checked
}

// broken counts how often each rule is.
func (s summary) broken() map[books.Rule]int {
	times := map[books.Rule]int{}
	for _, v := range s.Violations {
		times[v.Rule]++
	}
	return times
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
		s.Effects[placeOrder], s.Effects[payCard], s.Effects[payWallet])
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
	byRule := s.broken()
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
	base := filepath.Join(cfg.Out, s.Run)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	picture, step, err := draw(s, o.classes, cfg.Duration)
	if err != nil {
		return err
	}
	page, err := write(s, picture, step)
	if err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".json": append(text, '\n'), ".png": picture, ".html": page} {
		if err := os.WriteFile(base+ending, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "report   %s.html\npicture  %s.png\ndata     %s.json\n", base, base, base)
	return nil
}
