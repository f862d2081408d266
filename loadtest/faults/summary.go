package main

import (
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// soon is longer than any pause of a client that goes on: Retry-After and up to 2 s more.
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
	Faults      int                     `json:"faults"`   // that hurt
	Attempts    int                     `json:"attempts"`
	Keys        int                     `json:"keys"`
	Effects     map[string]int          `json:"effects"`
	Outcomes    map[journal.Outcome]int `json:"outcomes"`
	PassedOn    int                     `json:"passed_on"`      // POSTs that nginx gave to a second replica
	Republished int                     `json:"republished"`    // events that are in the stream more than once
	Replayed    int                     `json:"replayed"`       // events that were sent again because Redis had lost its data
	Failovers   int                     `json:"failovers"`      // of Redis, by Sentinel
	Appointed   time.Duration           `json:"appointed"`      // the longest that Sentinel took to find the master gone and to appoint another
	Death       death                   `json:"death"`          // the worst of them all
	Deaths      int                     `json:"deaths"`         // that were measured
	Orphans     int                     `json:"orphans"`        // keys of clients that lost an attempt to a death
	Orphan      time.Duration           `json:"slowest_orphan"` // from such a death to the key's answer; these clients pause, as they are asked to and for up to 2 s more
	Kinds       map[string]tally        `json:"kinds"`
	NotDrawn    []string                `json:"not_drawn"` // kinds that there was no time for
	Injuries    []injury                `json:"injuries"`
	Promises    []promise               `json:"promises"`
	Violations  []verify.Violation      `json:"violations"`
	Score       verify.Score            `json:"score"`
}

// promise is a rule and how often it was broken.
type promise struct {
	Rule   verify.Rule `json:"rule"`
	Broken int         `json:"broken"`
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
		PassedOn: passedOn, Republished: c.books.Repeated(), Replayed: c.losses.events, Kinds: map[string]tally{}, NotDrawn: []string{},
		Injuries: c.injuries, Violations: c.violations}
	for _, a := range attempts {
		s.Outcomes[a.Outcome()]++
	}
	for _, i := range c.injuries {
		s.add(i)
	}
	for _, kind := range nemesis.Kinds(c.target) {
		if s.Kinds[kind].Faults == 0 {
			s.NotDrawn = append(s.NotDrawn, kind)
		}
	}
	s.Orphans, s.Orphan = orphans(attempts, c.injuries)
	broken := map[verify.Rule]int{}
	for _, v := range c.violations {
		broken[v.Rule]++
	}
	for _, rule := range verify.Rules {
		s.Promises = append(s.Promises, promise{rule, broken[rule]})
	}
	return s
}

// add counts an injury with its kind.
func (s *summary) add(i injury) {
	if i.NotFired {
		return
	}
	s.Faults++
	t := s.Kinds[i.Kind]
	t.Faults++
	t.InFlight += i.InFlight
	t.Slowest = max(t.Slowest, i.Recovered-i.Healed)
	if i.Hits != nil {
		t.Hits += *i.Hits
	}
	s.Kinds[i.Kind] = t
	if i.Appointed > 0 {
		s.Failovers++
		s.Appointed = max(s.Appointed, i.Appointed)
	}
	if i.Death != nil {
		s.Deaths++
		s.Death.Door = max(s.Death.Door, i.Death.Door)
		s.Death.Orphans += i.Death.Orphans
		s.Death.Decided = max(s.Death.Decided, i.Death.Decided)
	}
}

// effects counts what came of it all, and only what succeeded.
func effects(b verify.Books) map[string]int {
	count := map[string]int{"orders": len(b.Orders), "top-ups": len(b.TopUps), "ledger transactions": len(b.Transactions), "events": len(b.Events)}
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
