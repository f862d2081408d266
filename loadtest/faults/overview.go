package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/template"
	"time"
)

// overview is many runs on one page.
type overview struct {
	Runs       []summary
	Total      summary  // sums, and the worst of each figure
	Versions   []string // that occur
	Promises   []promise
	Kinds      []kindTotal
	NotDrawn   []string // kinds that no run had the time for
	NotCovered []string
}

type kindTotal struct {
	Name string
	tally
}

//go:embed overview.md.tmpl
var overviewText string

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"seconds": func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) },
	"round":   func(d time.Duration) string { return d.Round(time.Second).String() },
	"perHour": func(n int, d time.Duration) string { return thousands(int(float64(n) / max(d.Hours(), 1e-9))) },
	"n":       thousands,
}).Parse(overviewText))

// writeOverview reads the JSON reports of some runs and writes one page of Markdown about them all.
func writeOverview(out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return errors.New("usage: go run ./loadtest/faults summary REPORT.json …")
	}
	var runs []summary
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var run summary
		if err := json.Unmarshal(raw, &run); err != nil {
			return fmt.Errorf("%s is no report: %w", path, err)
		}
		runs = append(runs, run)
	}
	return overviewPage.Execute(out, overviewOf(runs))
}

func overviewOf(runs []summary) overview {
	slices.SortStableFunc(runs, func(a, b summary) int { return a.Date.Compare(b.Date) })
	o := overview{Runs: runs, Total: summary{Effects: map[string]int{}}, NotCovered: notCovered}
	kinds := map[string]tally{}
	for _, run := range runs {
		o.add(run)
		for kind, t := range run.Kinds {
			all := kinds[kind]
			kinds[kind] = tally{all.Faults + t.Faults, all.InFlight + t.InFlight, all.Hits + t.Hits, max(all.Slowest, t.Slowest)}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		o.Kinds = append(o.Kinds, kindTotal{kind, kinds[kind]})
	}
	for _, run := range runs {
		for _, kind := range run.NotDrawn {
			if kinds[kind].Faults == 0 && !slices.Contains(o.NotDrawn, kind) {
				o.NotDrawn = append(o.NotDrawn, kind)
			}
		}
	}
	return o
}

func (o *overview) add(run summary) {
	t := &o.Total
	t.Duration += run.Duration
	t.Faults += run.Faults
	t.Attempts += run.Attempts
	t.Keys += run.Keys
	for what, n := range run.Effects {
		t.Effects[what] += n
	}
	t.PassedOn += run.PassedOn
	t.ReadLate += run.ReadLate
	t.SameTime += run.SameTime
	t.Republished += run.Republished
	t.Keyless.Sent += run.Keyless.Sent
	t.Keyless.Unanswered += run.Keyless.Unanswered
	t.Failovers += run.Failovers
	t.Promotion = max(t.Promotion, run.Promotion)
	t.Deaths += run.Deaths
	t.Death.Nginx = max(t.Death.Nginx, run.Death.Nginx)
	t.Death.Keys += run.Death.Keys
	t.Death.Decided = max(t.Death.Decided, run.Death.Decided)
	t.Violations = append(t.Violations, run.Violations...)
	if v := run.Versions.String(); !slices.Contains(o.Versions, v) {
		o.Versions = append(o.Versions, v)
	}
	for i, p := range run.Promises {
		if i == len(o.Promises) {
			o.Promises = append(o.Promises, promise{Rule: p.Rule})
		}
		o.Promises[i].Broken += p.Broken
	}
}

// Slowest is the slowest recovery of a run.
func (s summary) Slowest() (slowest time.Duration) {
	for _, t := range s.Kinds {
		slowest = max(slowest, t.Slowest)
	}
	return slowest
}

// SlowestOfAll is the slowest recovery of all runs.
func (o overview) SlowestOfAll() (slowest time.Duration) {
	for _, run := range o.Runs {
		slowest = max(slowest, run.Slowest())
	}
	return slowest
}

// thousands sets a space between groups of three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
