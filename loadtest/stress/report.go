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
	"strings"
	"text/tabwriter"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/report"
)

// maxShown violations are printed; the JSON has all.
const maxShown = 20

// errOff says that the run is over and something is wrong.
var errOff = errors.New("not everything is as it must be")

// conclude prints the result, writes the files, and returns an error unless all is well. Unread is
// why there was no audit, if so.
func (o *outcome) conclude(unread error, out io.Writer) error {
	if unread != nil {
		o.Unread = unread.Error()
	}
	o.close()
	o.print(out)
	if err := o.writeFiles(out); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if unread == nil && !o.Passed {
		return errOff
	}
	return unread
}

// close computes what follows from all that was found.
func (o *outcome) close() {
	for _, r := range slices.Concat(o.Rows, o.Classes) {
		r.close()
	}
	for op, entries := range o.answers.kept() {
		o.Effects[op] = len(entries)
	}
	o.Pace = o.cfg.pace().punctuality(o.sent)
	o.Passed = o.Unread == "" && len(o.Violations) == 0 && o.Pace.Kept && o.all().Requests == o.cfg.requests()
}

// promises are those that were checked, and every rule that is broken.
func (o *outcome) promises() (checked []report.Promise) {
	wanted := slices.Clone(ofAnswers)
	if o.Unread == "" {
		wanted = append(wanted, ofBooks...)
	}
	if o.Events != nil {
		wanted = append(wanted, inTime)
	}
	broken := o.broken()
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
func (o *outcome) broken() map[books.Rule]int {
	times := map[books.Rule]int{}
	for _, v := range o.Violations {
		times[v.Rule]++
	}
	return times
}

func (o *outcome) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n%-20s\trequests\tok\tunexpected\tnew\treplayed\t409\t422\tp50 ms\tp95 ms\tp99 ms\tmax ms\t\n", "kind")
	for _, r := range o.Rows {
		fmt.Fprintf(table, "%-20s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Kind, r.Requests, r.OK, r.Unexpected,
			r.New, r.Replayed, r.InProgress, r.Refused, r.P50, r.P95, r.P99, r.Max)
	}
	_ = table.Flush() // out is a terminal
	fmt.Fprintf(out, "\n%s\n%s\n", o.Compared(), o.Load())
	for _, name := range slices.Sorted(maps.Keys(o.Memory)) {
		fmt.Fprintf(out, "Memory of %s at its peak: %.1f MiB resident.\n", name, mebibytes(o.Memory[name]))
	}
	fmt.Fprintln(out, o.verdict())
	if o.Unread != "" {
		fmt.Fprintln(out, " ", o.Unread)
	}
	for _, p := range o.promises() {
		if p.Broken > 0 {
			fmt.Fprintf(out, "  %6d  %s\n", p.Broken, p.Text)
		}
	}
	for _, v := range o.Shown() {
		fmt.Fprintf(out, "  - %s\n", v)
	}
}

// Shown are the first violations.
func (o *outcome) Shown() []books.Violation { return o.Violations[:min(maxShown, len(o.Violations))] }

func (o *outcome) title() string {
	return fmt.Sprintf("oncepay at %d requests a second for %s", o.Rate, o.Duration)
}

func (o *outcome) verdict() string {
	if o.Passed {
		return "Passed: every key had one effect and one answer."
	}
	var why []string
	if o.Unread != "" {
		why = append(why, "nothing could be compared with what is stored")
	}
	if n := len(o.Violations); n > 0 {
		why = append(why, fmt.Sprintf("broken promises: %d", n))
	}
	if !o.Pace.Kept {
		why = append(why, "the rate was not kept, so these are the latencies of a lower one")
	}
	if len(why) == 0 {
		why = append(why, "not every request was sent")
	}
	return "Failed: " + strings.Join(why, "; ") + "."
}

// Compared says how much was, and how late events were.
func (o *outcome) Compared() string {
	text := fmt.Sprintf("Acknowledged: %d orders, %d card payments and %d payments from wallets.",
		o.Effects[placeOrder], o.Effects[payCard], o.Effects[payWallet])
	if e := o.Events; e != nil {
		text += fmt.Sprintf(" %d events were written, and %d of them are outstanding. Time from a change to the effect of its event: p50 %.1f ms, p99 %.1f ms, max %.1f ms.",
			e.Written, e.Outstanding, report.Milliseconds(e.Consumed.P50), report.Milliseconds(e.Consumed.P99), report.Milliseconds(e.Consumed.Max))
	}
	return text
}

// Load says how well the rate was kept.
func (o *outcome) Load() string {
	return fmt.Sprintf("%.1f requests a second were sent; 99%% of them at most %.1f ms late, the latest %.1f ms.", o.Pace.Achieved, o.Pace.P99, o.Pace.Max)
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func (o *outcome) writeFiles(out io.Writer) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	picture, step, err := o.draw()
	if err != nil {
		return err
	}
	page, err := o.page(picture, step)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.cfg.Out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(o.cfg.Out, o.Run)
	for ending, content := range map[string][]byte{".json": append(text, '\n'), ".png": picture, ".html": page} {
		if err := os.WriteFile(base+ending, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "report   %s.html\npicture  %s.png\ndata     %s.json\n", base, base, base)
	return nil
}
