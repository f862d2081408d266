package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/conformance"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/report"
)

// summary is a run in figures: the report as JSON. Durations are in nanoseconds.
type summary struct {
	System      string                  `json:"system"`
	Seed        uint64                  `json:"seed"`
	Command     string                  `json:"command"` // repeats the run
	Date        time.Time               `json:"date"`
	Versions    versions                `json:"versions"`
	Clients     int                     `json:"clients"`
	Duration    time.Duration           `json:"duration"` // of the load
	Faults      int                     `json:"faults"`   // fault runs
	Attempts    int                     `json:"attempts"`
	Keys        int                     `json:"keys"`
	Effects     map[string]int          `json:"effects"`
	Outcomes    map[journal.Outcome]int `json:"outcomes"`
	PassedOn    int                     `json:"passed_on"` // POSTs that nginx passed on to the other replica
	Keyless     keyless                 `json:"keyless"`
	Republished int                     `json:"republished"` // events that are in the stream more than once
	ReadLate    int                     `json:"read_late"`   // keys that excuseLateReads excused
	SameTime    int                     `json:"same_time"`   // provider events that deliverAgain cleared
	Failovers   int                     `json:"failovers"`   // of Redis, by Sentinel
	Promotion   time.Duration           `json:"promotion"`   // the longest that Sentinel took to promote the other server
	Death       death                   `json:"death"`       // the worst of them all
	Deaths      int                     `json:"deaths"`      // that were measured
	Kinds       map[string]tally        `json:"kinds"`
	NotDrawn    []string                `json:"not_drawn"` // kinds that there was no time for
	Runs        []faultRun              `json:"runs"`
	Promises    []report.Promise        `json:"promises"`
	Violations  []books.Violation       `json:"violations"`
	Score       verify.Score            `json:"score"`
	Generated   conformance.Report      `json:"generated"`
}

// keyless are the changes that were sent without a key. Those without an answer may have acted once
// or not at all: the check allows both.
type keyless struct {
	Sent       int `json:"sent"`
	Unanswered int `json:"unanswered"`
}

// tally is what a kind of fault amounted to.
type tally struct {
	Faults   int           `json:"faults"`
	InFlight int           `json:"in_flight"`
	Hits     int           `json:"hits,omitempty"`
	Slowest  time.Duration `json:"slowest_recovery"`
}

// plus adds tallies.
func (t tally) plus(o tally) tally {
	return tally{t.Faults + o.Faults, t.InFlight + o.InFlight, t.Hits + o.Hits, max(t.Slowest, o.Slowest)}
}

// figures are what a fault run adds to a summary.
func (r faultRun) figures() (s summary) {
	if r.NotFired {
		return s
	}
	t := tally{Faults: 1, InFlight: r.InFlight, Slowest: r.Took()}
	if r.Hits != nil {
		t.Hits = *r.Hits
	}
	s.Faults, s.Kinds, s.Promotion = 1, map[string]tally{r.Kind: t}, r.Promotion
	if r.Promotion > 0 {
		s.Failovers = 1
	}
	if r.Death != nil {
		s.Deaths, s.Death = 1, *r.Death
	}
	return s
}

// add adds the figures of a fault run, or of another campaign: sums, and the worst of what is
// measured.
func (s *summary) add(o summary) {
	s.Duration += o.Duration
	s.Faults += o.Faults
	s.Attempts += o.Attempts
	s.Keys += o.Keys
	for what, n := range o.Effects {
		s.Effects[what] += n
	}
	s.PassedOn += o.PassedOn
	s.Keyless.Sent += o.Keyless.Sent
	s.Keyless.Unanswered += o.Keyless.Unanswered
	s.Republished += o.Republished
	s.ReadLate += o.ReadLate
	s.SameTime += o.SameTime
	s.Failovers += o.Failovers
	s.Promotion = max(s.Promotion, o.Promotion)
	s.Deaths += o.Deaths
	s.Death = death{max(s.Death.Nginx, o.Death.Nginx), s.Death.Keys + o.Death.Keys, max(s.Death.Decided, o.Death.Decided)}
	for kind, t := range o.Kinds {
		s.Kinds[kind] = s.Kinds[kind].plus(t)
	}
	s.Violations = append(s.Violations, o.Violations...)
}

func (c *campaign) summarize(passedOn int) summary {
	attempts := c.journal.Attempts()
	s := summary{System: c.cfg.System, Score: c.score, Seed: c.cfg.Seed, Command: c.cfg.command(), Date: time.Now().UTC().Truncate(time.Second), Versions: c.versions, Clients: c.cfg.Clients,
		Duration: c.stopped, Attempts: len(attempts), Keys: len(verify.History(attempts)), Effects: effects(c.books), Outcomes: map[journal.Outcome]int{},
		PassedOn: passedOn, ReadLate: c.readLate, SameTime: c.sameMicrosecond, Republished: c.books.Repeated(), Kinds: map[string]tally{}, NotDrawn: []string{},
		Runs: c.runs, Violations: c.violations, Generated: c.generated}
	for _, a := range attempts {
		s.Outcomes[a.Outcome()]++
		if a.Key == "" && a.Change.Kind != journal.Get {
			s.Keyless.Sent++
			if a.Outcome() == journal.Unknown {
				s.Keyless.Unanswered++
			}
		}
	}
	for _, r := range c.runs {
		s.add(r.figures())
	}
	for _, kind := range fault.Kinds(c.target) {
		if s.Kinds[kind].Faults == 0 {
			s.NotDrawn = append(s.NotDrawn, kind)
		}
	}
	s.Promises = report.Promises(verify.Rules, c.violations)
	return s
}

// effects counts what succeeded.
func effects(b books.Books) map[string]int {
	count := map[string]int{"orders": len(b.Orders), "payments": len(b.Paid()), "refunds": len(b.Refunded()), "top-ups": len(b.TopUps),
		"ledger transactions": len(b.Transactions), "events": len(b.Events)}
	for _, p := range b.Products {
		count["changes of products"] += int(p.Version)
	}
	for _, ch := range b.Charges {
		if ch.Status == "succeeded" {
			count["charges"]++
		}
	}
	return count
}

// versions are of everything that a result depends on.
type versions struct {
	Oncepay  string `json:"oncepay"` // the commit; + when files differ from it
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Redis    string `json:"redis"`
	Nginx    string `json:"nginx"`
	System   string `json:"system"`
	CPUs     int    `json:"cpus"`
}

func (v versions) String() string {
	return fmt.Sprintf("oncepay %s, %s, PostgreSQL %s, Redis %s, nginx %s, %s, %d CPUs", v.Oncepay, v.Go, v.Postgres, v.Redis, v.Nginx, v.System, v.CPUs)
}

var number = regexp.MustCompile(`\d+(\.\d+)+`)

// readVersions asks the programs that a native stack runs.
func readVersions(ctx context.Context) versions {
	of := func(p *programs.Program, flag string) string {
		path, _ := p.Find()
		printed, _ := exec.CommandContext(ctx, path, flag).CombinedOutput() // one that is not there has no version
		return number.FindString(string(printed))
	}
	return versions{Oncepay: commit(ctx), Go: runtime.Version(), Postgres: of(programs.PostgreSQL, "--version"), Redis: of(programs.Redis, "--version"),
		Nginx: of(programs.Nginx, "-v"), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// commit is HEAD's; a tree that is no checkout of git has none.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown" // a release's tarball, say
	}
	name := strings.TrimSpace(string(head))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output(); err != nil || len(changed) > 0 {
		name += "+"
	}
	return name
}
