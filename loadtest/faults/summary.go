package main

import (
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/conformance"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// soon is longer than any pause between two attempts of a client: Retry-After and up to 2 s more.
const soon = 8 * time.Second

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
	Interrupted interrupted             `json:"interrupted"`
	Kinds       map[string]tally        `json:"kinds"`
	NotDrawn    []string                `json:"not_drawn"` // kinds that there was no time for
	Runs        []faultRun              `json:"runs"`
	Promises    []promise               `json:"promises"`
	Violations  []books.Violation       `json:"violations"`
	Score       verify.Score            `json:"score"`
	Generated   conformance.Report      `json:"generated"`
}

// interrupted are the keys of clients that lost an attempt to a death, and the longest from such a
// death to the key's answer. These clients pause, as they are asked to and for up to 2 s more.
type interrupted struct {
	Keys    int           `json:"keys"`
	Slowest time.Duration `json:"slowest"`
}

// keyless are the changes that were sent without a key. Those without an answer may have acted once
// or not at all: the check allows both.
type keyless struct {
	Sent       int `json:"sent"`
	Unanswered int `json:"unanswered"`
}

// promise is a rule and how often it was broken.
type promise struct {
	Rule   books.Rule `json:"rule"`
	Broken int        `json:"broken"`
}

// tally is what a kind of fault amounted to.
type tally struct {
	Faults   int           `json:"faults"`
	InFlight int           `json:"in_flight"`
	Hits     int           `json:"hits,omitempty"`
	Slowest  time.Duration `json:"slowest_recovery"`
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
		s.add(r)
	}
	for _, kind := range fault.Kinds(c.target) {
		if s.Kinds[kind].Faults == 0 {
			s.NotDrawn = append(s.NotDrawn, kind)
		}
	}
	s.Interrupted = interruptedBy(attempts, c.runs)
	broken := map[books.Rule]int{}
	for _, v := range c.violations {
		broken[v.Rule]++
	}
	for _, rule := range verify.Rules {
		s.Promises = append(s.Promises, promise{rule, broken[rule]})
	}
	return s
}

// add counts a run with its kind.
func (s *summary) add(r faultRun) {
	if r.NotFired {
		return
	}
	s.Faults++
	t := s.Kinds[r.Kind]
	t.Faults++
	t.InFlight += r.InFlight
	t.Slowest = max(t.Slowest, r.Recovered-r.Healed)
	if r.Hits != nil {
		t.Hits += *r.Hits
	}
	s.Kinds[r.Kind] = t
	if r.Promotion > 0 {
		s.Failovers++
		s.Promotion = max(s.Promotion, r.Promotion)
	}
	if r.Death != nil {
		s.Deaths++
		s.Death.Nginx = max(s.Death.Nginx, r.Death.Nginx)
		s.Death.Keys += r.Death.Keys
		s.Death.Decided = max(s.Death.Decided, r.Death.Decided)
	}
}

// effects counts what succeeded.
func effects(b books.Books) map[string]int {
	count := map[string]int{"orders": len(b.Orders), "top-ups": len(b.TopUps), "ledger transactions": len(b.Transactions), "events": len(b.Events)}
	for _, p := range b.Products {
		count["changes of products"] += int(p.Version)
	}
	for _, p := range b.Payments {
		count["payments"] += succeeded(p.Status)
	}
	for _, r := range b.Refunds {
		count["refunds"] += succeeded(r.Status)
	}
	for _, ch := range b.Charges {
		count["charges"] += succeeded(ch.Status)
	}
	return count
}

func succeeded(status string) int {
	if status == "succeeded" {
		return 1
	}
	return 0
}

// interruptedBy finds the keys that lost an attempt to the death of a replica.
func interruptedBy(attempts []journal.Attempt, runs []faultRun) (all interrupted) {
	decided := map[books.KeyID]time.Duration{}
	for _, a := range attempts {
		id := books.KeyID{Account: a.Account, Key: a.Key}
		if at, known := decided[id]; a.Outcome().Decided() && (!known || a.Return < at) {
			decided[id] = a.Return
		}
	}
	seen, histories := map[books.KeyID]bool{}, verify.History(attempts)
	for _, r := range runs {
		if r.NotFired || r.Dies == "" {
			continue
		}
		for _, a := range attempts {
			id := books.KeyID{Account: a.Account, Key: a.Key}
			overlaps := a.Invoke <= r.Healed && a.Return >= r.Injected
			if a.Outcome() != journal.Unknown || !overlaps || seen[id] || decided[id] < a.Return {
				continue
			}
			if !asked(histories[id], a.Return) {
				continue // its client had left
			}
			seen[id] = true
			all.Keys++
			all.Slowest = max(all.Slowest, decided[id]-a.Return)
		}
	}
	return all
}

// asked says whether a client tried again soon.
func asked(attempts []journal.Attempt, since time.Duration) bool {
	return slices.ContainsFunc(attempts, func(a journal.Attempt) bool { return a.Invoke > since && a.Invoke < since+soon })
}
