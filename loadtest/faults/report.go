package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/timeline"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// soon is longer than any pause of a client that goes on: Retry-After and up to 2 s more.
const soon = 8 * time.Second

// maxHistories bounds how many keys are printed in full, and maxShown how many violations of a rule.
const maxHistories, maxShown = 5, 5

// summary is the report as JSON.
type summary struct {
	System     string                  `json:"system"`
	Seed       uint64                  `json:"seed"`
	Command    string                  `json:"command"` // repeats the run
	Date       time.Time               `json:"date"`
	Duration   time.Duration           `json:"duration"`
	Faults     int                     `json:"faults"`
	Attempts   int                     `json:"attempts"`
	Keys       int                     `json:"keys"`
	Effects    map[string]int          `json:"effects"`
	Outcomes   map[journal.Outcome]int `json:"outcomes"`
	Orphans    int                     `json:"orphans"`        // keys whose replica died under them
	Orphan     time.Duration           `json:"slowest_orphan"` // from such a death to the key's answer; clients pause for up to 2 s more than asked
	Kinds      map[string]tally        `json:"kinds"`
	Injuries   []injury                `json:"injuries"`
	Violations []verify.Violation      `json:"violations"`
	Score      verify.Score            `json:"score"`
}

// tally is what a kind of fault amounted to.
type tally struct {
	Faults   int           `json:"faults"`
	InFlight int           `json:"in_flight"`
	Slowest  time.Duration `json:"slowest_recovery"`
}

func (c *campaign) summarize() summary {
	attempts := c.journal.Attempts()
	s := summary{System: c.cfg.System, Score: c.score, Seed: c.cfg.Seed, Command: c.cfg.command(), Date: time.Now().UTC(), Duration: c.stopped, Faults: len(c.injuries), Attempts: len(attempts),
		Keys: len(verify.History(attempts)), Outcomes: map[journal.Outcome]int{}, Kinds: map[string]tally{}, Injuries: c.injuries, Violations: c.violations,
		Effects: map[string]int{"orders": len(c.books.Orders), "payments": len(c.books.Payments), "refunds": len(c.books.Refunds), "top-ups": len(c.books.TopUps),
			"charges": len(c.books.Charges), "ledger transactions": len(c.books.Transactions), "events": len(c.books.Events)}}
	for _, a := range attempts {
		s.Outcomes[a.Outcome()]++
	}
	for _, i := range c.injuries {
		t := s.Kinds[i.Kind]
		if !i.NotFired {
			t.Faults++
			t.InFlight += i.InFlight
			t.Slowest = max(t.Slowest, i.Recovered-i.Healed)
		}
		s.Kinds[i.Kind] = t
	}
	s.Orphans, s.Orphan = orphans(attempts, c.injuries)
	return s
}

// orphans finds the keys that lost an attempt to the death of a replica, and how long the slowest of them took to be decided then.
func orphans(attempts []journal.Attempt, injuries []injury) (n int, slowest time.Duration) {
	decided := map[verify.KeyID]time.Duration{}
	for _, a := range attempts {
		id := verify.KeyID{Account: a.Account, Key: a.Key}
		if at, known := decided[id]; a.Outcome().Decided() && (!known || a.Return < at) {
			decided[id] = a.Return
		}
	}
	seen, histories := map[verify.KeyID]bool{}, verify.History(attempts)
	for _, i := range injuries {
		if i.NotFired || !strings.HasPrefix(i.Name, "kill api-") {
			continue
		}
		for _, a := range attempts {
			id := verify.KeyID{Account: a.Account, Key: a.Key}
			if a.Outcome() != journal.Unknown || a.Invoke > i.Healed || a.Return < i.Injected || seen[id] || decided[id] < a.Return {
				continue
			}
			if !asked(histories[id], a.Return) {
				continue // its client had walked away: nobody waited
			}
			seen[id] = true
			slowest = max(slowest, decided[id]-a.Return)
		}
	}
	return len(seen), slowest
}

// asked says whether a client tried again soon.
func asked(attempts []journal.Attempt, since time.Duration) bool {
	return slices.ContainsFunc(attempts, func(a journal.Attempt) bool { return a.Invoke > since && a.Invoke < since+soon })
}

// report prints the verdict and writes the files.
func (c *campaign) report() error {
	s := c.summarize()
	c.printTable(s)
	c.printVerdicts(s)
	c.printHistories(s)
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	base := filepath.Join(c.cfg.Out, c.name())
	if err := os.WriteFile(base+".json", raw, 0o644); err != nil {
		return err
	}
	page, err := os.Create(base + ".html")
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	fmt.Fprintf(c.out, "\nreport: %s.html, .json and .journal\nagain:  %s\n", base, s.Command)
	return timeline.Write(page, c.page(s))
}

func (c *campaign) printTable(s summary) {
	fmt.Fprintf(c.out, "\n%-32s %6s %10s %10s\n", "FAULT", "TIMES", "IN FLIGHT", "BACK AFTER")
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		t := s.Kinds[kind]
		fmt.Fprintf(c.out, "%-32s %6d %10d %9.1fs\n", kind, t.Faults, t.InFlight, t.Slowest.Seconds())
	}
	fmt.Fprintf(c.out, "\n%d faults, %d attempts (%.0f/s), %d keys\n", s.Faults, s.Attempts, float64(s.Attempts)/s.Duration.Seconds(), s.Keys)
	fmt.Fprintf(c.out, "%d keys lost an attempt while a replica was dead; the slowest was decided %.1fs later\n", s.Orphans, s.Orphan.Seconds())
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		fmt.Fprintf(c.out, "  %-20s %7d\n", name, s.Effects[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Outcomes)) {
		fmt.Fprintf(c.out, "  answers: %-11s %7d\n", name, s.Outcomes[name])
	}
}

func (c *campaign) printVerdicts(s summary) {
	count := map[verify.Rule]int{}
	for _, v := range s.Violations {
		count[v.Rule]++
	}
	fmt.Fprintf(c.out, "\n%-52s VERDICT\n", "PROMISE")
	for _, rule := range verify.Rules {
		fmt.Fprintf(c.out, "%-52s %s\n", rule, verdict(count[rule]))
	}
	shown := map[verify.Rule]int{}
	for _, v := range s.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= maxShown {
			fmt.Fprintln(c.out, "VIOLATION", v)
		}
	}
}

func verdict(broken int) string {
	if broken > 0 {
		return fmt.Sprintf("BROKEN %d times", broken)
	}
	return "kept"
}

func (c *campaign) printHistories(s summary) {
	histories, printed := verify.History(c.journal.Attempts()), map[verify.KeyID]bool{}
	for _, v := range s.Violations {
		id := verify.KeyID{Account: v.Account, Key: v.Key}
		if v.Key == "" || printed[id] || len(printed) == maxHistories {
			continue
		}
		printed[id] = true
		fmt.Fprintf(c.out, "\nhistory of %s of %s (%s):\n", v.Key, v.Account, v.Rule)
		for _, a := range sorted(histories[id]) {
			fmt.Fprintln(c.out, " ", a)
		}
	}
}

func sorted(attempts []journal.Attempt) []journal.Attempt {
	return slices.SortedFunc(slices.Values(attempts), func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) })
}

// page is the summary for people.
func (c *campaign) page(s summary) timeline.Page {
	p := timeline.Page{Title: "oncepay fault campaign", Command: s.Command, Facts: []string{
		fmt.Sprintf("%d faults", s.Faults), fmt.Sprintf("%d attempts", s.Attempts), fmt.Sprintf("%d keys", s.Keys),
		fmt.Sprintf("%d charges", s.Effects["charges"]), fmt.Sprintf("%d violations", len(s.Violations)), s.Date.Format(time.RFC3339)}}
	for _, a := range c.journal.Attempts() {
		p.Attempts = append(p.Attempts, timeline.Attempt{At: a.Return, Took: a.Return - a.Invoke, OK: a.Outcome() != journal.Unknown})
	}
	for _, i := range c.injuries {
		p.Faults = append(p.Faults, timeline.Fault{Name: i.Name, From: i.Injected, To: i.Healed, Back: i.Recovered, InFlight: i.InFlight})
	}
	count := map[verify.Rule]int{}
	for _, v := range s.Violations {
		count[v.Rule]++
	}
	for _, rule := range verify.Rules {
		p.Verdicts = append(p.Verdicts, timeline.Verdict{Promise: string(rule), Verdict: verdict(count[rule]), Broken: count[rule] > 0})
	}
	return p
}
