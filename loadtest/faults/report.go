package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

// maxHistories bounds how many keys are printed in full, and maxShown how many violations of a
// rule.
const maxHistories, maxShown = 5, 5

// report prints the figures and writes the report files. What another system does wrong is counted
// and no failure, so that it has a score and no page.
func (c *campaign) report(attempts []journal.Attempt) error {
	if err := pages.ExecuteTemplate(c.out, "report.txt.tmpl", c.result); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c.result, "", "  ")
	if err != nil {
		return err
	}
	base := filepath.Join(c.cfg.Out, c.name())
	if err := os.WriteFile(base+".json", raw, 0o644); err != nil {
		return err
	}
	evidence := c.evidence(attempts)
	if c.cfg.other() {
		score, _ := json.MarshalIndent(c.Score, "", "  ")
		fmt.Fprintf(c.out, "\nscore of %s: %s\n%s\nreport: %s.json\nagain:  %s\n", c.System, score, evidence, base, c.Command)
		return nil
	}
	fmt.Fprintf(c.out, "%s\nreport: %s.html, .json and .journal\nagain:  %s\n", evidence, base, c.Command)
	page, err := pageOf(c.result, attempts, evidence)
	return errors.Join(err, page.Write(base+".html"))
}

// notCovered is what no campaign shows.
var notCovered = []string{
	"Power cuts, lost fsyncs and disks that lie: PostgreSQL is crashed and paused, its disk is not.",
	"PostgreSQL failing over to an asynchronous standby, or restored from a backup under load: both lose commits, and promises with them. " +
		"(Tests of the service show that the loss is noticed and named.)",
	"Clocks that jump: the replicas' clocks are the machine's. (Clients time requests as a proxy does whose clock is two seconds ahead; tests of the service have PostgreSQL's clock jump by hours, and a replica's an hour off.)",
	"A provider that breaks its own idempotency: it may be slow, silent, failing and senseless, but charges once per key. " +
		"(Tests of the service have one that forgets a key after an hour, and one that charges an hour after it was asked. " +
		"If it forgets a key within the hour, or charges later, money moves without a payment: its event then raises ProviderContradictsItself.)",
	"More than two replicas, more than one machine, and networks that reorder or corrupt what they deliver.",
}

// pageOf is a campaign as an HTML page: throughput and latency over time with the fault runs, the
// promises, and the figures.
func pageOf(s result, attempts []journal.Attempt, evidence string) (page report.Page, err error) {
	var bars []report.Bar
	for _, r := range s.Runs {
		if !r.NotFired {
			bars = append(bars, report.Bar{Lane: r.Kind, From: r.Injected, To: r.Healed, Tail: r.Took()})
		}
	}
	var figures strings.Builder
	err = pages.ExecuteTemplate(&figures, "table of faults", s)
	page = report.Page{Title: fmt.Sprintf("oncepay under %d faults", s.Faults), Verdict: fmt.Sprintf("All %d promises were kept.", len(s.Promises)),
		Broken: len(s.Violations) > 0, Evidence: evidence, Promises: s.Promises, Figures: figures.String(),
		Legend: "Each bar is a fault, and its pale end the time until every endpoint answered again. " +
			"Hits are the answers and events that a fault changed, or the requests that nginx passed on to the other replica.",
		Command: s.Command, NotCovered: notCovered, Notes: []string{s.Date.Format(time.RFC1123) + ": oncepay " + s.Commit + ", " + s.Versions,
			"The faults and the clients' choices follow from the seed; what meets what, in which microsecond, does not."}}
	if page.Broken {
		page.Verdict = fmt.Sprintf("Promises were broken: %d violations.", len(s.Violations))
	}
	picture, drawn := report.Draw(attempts, []report.Line{{Name: "all", Of: func(journal.Attempt) bool { return true }}}, bars)
	page.Picture = picture
	return page, errors.Join(err, drawn)
}

// evidence is some violations of each rule, and every attempt of some of their keys, products and
// customers, in order of time.
func (r result) evidence(attempts []journal.Attempt) (text string) {
	shown, printed := map[books.Rule]int{}, map[books.KeyID]bool{}
	for _, v := range r.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= maxShown {
			text += fmt.Sprintln("VIOLATION", v)
		}
	}
	byTime := func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) }
	attempts = slices.SortedFunc(slices.Values(attempts), byTime)
	for _, v := range r.Violations {
		id := books.KeyID{Account: v.Account, Key: v.Key}
		if v.Key == "" || printed[id] || len(printed) == maxHistories {
			continue
		}
		printed[id] = true
		text += fmt.Sprintf("\nhistory of %s of %s (%s):\n", v.Key, v.Account, v.Rule)
		for _, a := range attempts {
			if a.Account == v.Account && (a.Key == v.Key || a.Change != nil && a.Change.Of == v.Key) {
				text += "  " + a.String() + "\n"
			}
		}
	}
	return text
}

//go:embed overview.md.tmpl report.txt.tmpl
var texts embed.FS

// pages are the report of a campaign as text, and the overview.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"seconds": report.Seconds,
	"round":   func(d time.Duration) string { return d.Round(time.Second).String() },
	"perHour": func(n int, d time.Duration) int { return int(float64(n) / max(d.Hours(), 1e-9)) },
	"n":       func(n int) string { return message.NewPrinter(language.English).Sprint(n) },
}).ParseFS(texts, "*.tmpl"))

// writeOverview reads the JSON reports of some runs and writes one page of Markdown about them all.
func writeOverview(out io.Writer, paths []string) error {
	page := struct {
		Runs       []result
		Total      result
		Versions   map[string]bool // that occur
		NotCovered []string
	}{nil, result{Counts: map[string]int{}}, map[string]bool{}, notCovered}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var run result
		if err := json.Unmarshal(raw, &run); err != nil {
			return fmt.Errorf("%s is no report: %w", path, err)
		}
		page.Runs = append(page.Runs, run)
		page.Total.add(run)
		page.Versions["oncepay "+run.Commit+", "+run.Versions] = true
	}
	slices.SortStableFunc(page.Runs, func(a, b result) int { return a.Date.Compare(b.Date) })
	return pages.ExecuteTemplate(out, "overview.md.tmpl", page)
}

// Rate is the attempts per second.
func (r result) Rate() float64 { return float64(r.Attempts) / r.Duration.Seconds() }
