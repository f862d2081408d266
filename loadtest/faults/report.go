package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/report"
)

// maxHistories bounds how many keys are printed in full, and maxShown how many violations of a
// rule.
const maxHistories, maxShown = 5, 5

// report prints the figures and writes the report files. What another system does wrong is counted
// and no failure, so that its page has no verdict.
func (c *campaign) report(s summary) error {
	if err := pages.ExecuteTemplate(c.out, "report.txt.tmpl", s); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	base := filepath.Join(c.cfg.Out, c.name())
	if err := os.WriteFile(base+".json", raw, 0o644); err != nil {
		return err
	}
	if c.cfg.other() {
		score, _ := json.MarshalIndent(c.score, "", "  ")
		fmt.Fprintf(c.out, "\nscore of %s: %s\n\nreport: %s.json\nagain:  %s\n", s.System, score, base, s.Command)
		return nil
	}
	var evidence strings.Builder
	c.writeEvidence(&evidence, s)
	fmt.Fprintf(c.out, "%s\nreport: %s.html, .json and .journal\nagain:  %s\n", &evidence, base, s.Command)
	page, err := pageOf(s, c.journal.Attempts(), evidence.String())
	return errors.Join(err, page.Write(base+".html"))
}

// writeEvidence shows some violations of each rule, and the full histories of some keys.
func (c *campaign) writeEvidence(out io.Writer, s summary) {
	shown := map[books.Rule]int{}
	for _, v := range s.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= maxShown {
			fmt.Fprintln(out, "VIOLATION", v)
		}
	}
	all, printed := histories(c.journal.Attempts()), map[books.KeyID]bool{}
	for _, v := range s.Violations {
		id := books.KeyID{Account: v.Account, Key: v.Key}
		if v.Key == "" || printed[id] || len(printed) == maxHistories {
			continue
		}
		printed[id] = true
		fmt.Fprintf(out, "\nhistory of %s of %s (%s):\n%s", v.Key, v.Account, v.Rule, lines(all[id]))
	}
}

//go:embed overview.md.tmpl report.txt.tmpl
var texts embed.FS

// pages are the report of a campaign as text, and the overview.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"seconds": report.Seconds,
	"round":   func(d time.Duration) string { return d.Round(time.Second).String() },
	"perHour": func(n int, d time.Duration) string { return thousands(int(float64(n) / max(d.Hours(), 1e-9))) },
	"n":       thousands,
}).ParseFS(texts, "*.tmpl"))

// writeOverview reads the JSON reports of some runs and writes one page of Markdown about them all.
func writeOverview(out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return errors.New("usage: go run ./loadtest/faults summary REPORT.json …")
	}
	page := struct {
		Runs       []summary
		Total      summary  // sums, and the worst of each figure
		Versions   []string // that occur
		NotCovered []string
	}{Total: summary{Effects: map[string]int{}, Kinds: map[string]tally{}}, NotCovered: notCovered}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var run summary
		if err := json.Unmarshal(raw, &run); err != nil {
			return fmt.Errorf("%s is no report: %w", path, err)
		}
		page.Runs = append(page.Runs, run)
	}
	slices.SortStableFunc(page.Runs, func(a, b summary) int { return a.Date.Compare(b.Date) })
	total := &page.Total
	for _, run := range page.Runs {
		total.add(run)
		if v := run.Versions.String(); !slices.Contains(page.Versions, v) {
			page.Versions = append(page.Versions, v)
		}
		for i, p := range run.Promises {
			if i == len(total.Promises) {
				total.Promises = append(total.Promises, report.Promise{Rule: p.Rule})
			}
			total.Promises[i].Broken += p.Broken
		}
		total.NotDrawn = append(total.NotDrawn, run.NotDrawn...)
	}
	slices.Sort(total.NotDrawn)
	total.NotDrawn = slices.DeleteFunc(slices.Compact(total.NotDrawn), func(kind string) bool { return total.Kinds[kind].Faults > 0 })
	return pages.ExecuteTemplate(out, "overview.md.tmpl", page)
}

// Slowest is the slowest recovery.
func (s summary) Slowest() (slowest time.Duration) {
	for _, t := range s.Kinds {
		slowest = max(slowest, t.Slowest)
	}
	return slowest
}

// Rate is the attempts per second.
func (s summary) Rate() float64 { return float64(s.Attempts) / s.Duration.Seconds() }

// thousands sets a space between groups of three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// writeHistory shows what a journal holds of some keys: every attempt, in order.
func writeHistory(out io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("history needs a journal and keys")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	attempts, err := journal.Read(file)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		fmt.Fprintf(out, "%s: it is torn, and the rest is good\n", err)
	} else if err != nil {
		return err
	}
	for id, history := range histories(attempts) {
		if slices.Contains(args[1:], id.Key) {
			fmt.Fprintf(out, "%s of %s:\n%s", id.Key, id.Account, lines(history))
		}
	}
	return nil
}

// histories are the journal by key, and by the product or customer that is changed.
func histories(attempts []journal.Attempt) map[books.KeyID][]journal.Attempt {
	all := verify.History(attempts)
	maps.Copy(all, verify.Changes(attempts))
	return all
}

// lines has one for each attempt, in order of time.
func lines(history []journal.Attempt) (text string) {
	for _, a := range slices.SortedFunc(slices.Values(history), func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) }) {
		text += "  " + a.String() + "\n"
	}
	return text
}
