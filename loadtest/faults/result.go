package main

import (
	"context"
	"maps"
	"os/exec"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/report"
)

// result is what a campaign finds out, or several together: the report as JSON. Durations are in
// nanoseconds.
type result struct {
	System     string            `json:"system"`
	Seed       uint64            `json:"seed"`
	Command    string            `json:"command"` // repeats the run
	Date       time.Time         `json:"date"`
	Commit     string            `json:"commit"`   // of oncepay; + when files differ from it
	Versions   string            `json:"versions"` // of everything else that a result depends on
	Duration   time.Duration     `json:"duration"` // of the load
	Faults     int               `json:"faults"`   // fault runs
	Attempts   int               `json:"attempts"`
	Keys       int               `json:"keys"`
	Counts     map[string]int    `json:"counts"` // answers, effects, and what else a reader may ask for
	Kinds      []string          `json:"kinds"`  // of faults that the stack can have
	Runs       []faultRun        `json:"runs"`
	Promises   []report.Promise  `json:"promises"`
	Violations []books.Violation `json:"violations"`
	Score      verify.Score      `json:"score"`
}

// The names of counts that the texts use. Changes that were sent without a key and got no answer
// may have acted once or not at all: the check allows both.
const (
	charges     = "charges"
	posts       = "POSTs passed on by nginx"
	keyless     = "changes sent without a key"
	unanswered  = "changes without key and answer"
	sameTime    = "provider events of the same time" // that deliverAgain cleared
	republished = "events in the stream more than once"
)

// add adds the figures of another campaign.
func (r *result) add(o result) {
	r.Duration += o.Duration
	r.Faults += o.Faults
	r.Attempts += o.Attempts
	r.Keys += o.Keys
	for what, n := range o.Counts {
		r.Counts[what] += n
	}
	for i, p := range o.Promises {
		if i == len(r.Promises) {
			r.Promises = append(r.Promises, report.Promise{Rule: p.Rule})
		}
		r.Promises[i].Broken += p.Broken
	}
	r.Kinds = append(r.Kinds, o.Kinds...)
	r.Runs = append(r.Runs, o.Runs...)
	r.Violations = append(r.Violations, o.Violations...)
}

// tally is what fault runs amounted to: sums, and the worst of what is measured.
type tally struct {
	Faults, InFlight, Hits int
	Counted                bool          // the hits
	Slowest                time.Duration // recovery
	Deaths                 int           // that were measured
	Death                  death
	Failovers              int           // of Redis, by Sentinel
	Promotion              time.Duration // the longest that it took to promote the other server
}

func (t *tally) add(r faultRun) {
	if r.NotFired {
		return
	}
	t.Faults++
	t.InFlight += r.InFlight
	t.Slowest, t.Promotion = max(t.Slowest, r.Took()), max(t.Promotion, r.Promotion)
	if r.Hits != nil {
		t.Hits, t.Counted = t.Hits+*r.Hits, true
	}
	if r.Promotion > 0 {
		t.Failovers++
	}
	if d := r.Death; d != nil {
		t.Deaths++
		t.Death = death{max(t.Death.Nginx, d.Nginx), t.Death.Keys + d.Keys, max(t.Death.Decided, d.Decided)}
	}
}

// Tally is that of all fault runs.
func (r result) Tally() (all tally) {
	for _, run := range r.Runs {
		all.add(run)
	}
	return all
}

// Tallies are those of each kind; one that there was no time for has none.
func (r result) Tallies() map[string]tally {
	kinds := map[string]tally{}
	for _, kind := range r.Kinds {
		kinds[kind] = tally{}
	}
	for _, run := range r.Runs {
		t := kinds[run.Kind]
		t.add(run)
		kinds[run.Kind] = t
	}
	return kinds
}

// conclude counts what the campaign did and found.
func (c *campaign) conclude(attempts []journal.Attempt) {
	c.Date, c.Faults, c.Attempts, c.Keys =
		time.Now().UTC().Truncate(time.Second), c.Tally().Faults, len(attempts), len(verify.History(attempts))
	c.Kinds, c.Promises = fault.Kinds(c.target), report.Promises(verify.Rules, c.Violations)
	for _, a := range attempts {
		c.Counts["answers: "+string(a.Outcome())]++
		if a.Key == "" && a.Change.Kind != journal.Get {
			c.Counts[keyless]++
			if a.Outcome() == journal.Unknown {
				c.Counts[unanswered]++
			}
		}
	}
	b := c.books
	maps.Copy(c.Counts, map[string]int{"orders": len(b.Orders), "payments": len(b.Paid()), "refunds": len(b.Refunded()),
		"top-ups": len(b.TopUps), "ledger transactions": len(b.Transactions), "events": len(b.Events), republished: b.Repeated()})
	for _, p := range b.Products {
		c.Counts["changes of products"] += int(p.Version)
	}
	for _, ch := range b.Charges {
		if ch.Status == "succeeded" {
			c.Counts[charges]++
		}
	}
}

// commit asks git, if it is there.
func commit(ctx context.Context) string {
	text, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=+").CombinedOutput()
	return strings.TrimSpace(string(text))
}
