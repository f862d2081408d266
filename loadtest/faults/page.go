package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/timeline"
	"github.com/oncepay/oncepay/loadtest/report"
)

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

// outcomes are how the drawing tells them apart.
var outcomes = map[journal.Outcome]timeline.Outcome{
	journal.Expired: timeline.Refused, journal.LookedUp: timeline.Succeeded,
	journal.Succeeded: timeline.Succeeded, journal.Refused: timeline.Refused, journal.Reused: timeline.Refused,
	journal.InProgress: timeline.Waiting, journal.Rejected: timeline.Waiting, journal.TurnedAway: timeline.Waiting, journal.Unknown: timeline.Unknown,
}

// page is the summary for people.
func (c *campaign) page(s summary, evidence string) timeline.Page {
	p := timeline.Page{Head: report.Head{Title: fmt.Sprintf("oncepay under %d faults", s.Faults),
		Verdict: fmt.Sprintf("All %d promises were kept.", len(s.Promises)), Tiles: tiles(s)},
		Command: s.Command, Versions: s.Date.Format(time.RFC1123) + ": " + s.Versions.String(), Evidence: evidence, NotCovered: notCovered}
	if p.Broken = len(s.Violations) > 0; p.Broken {
		p.Verdict = fmt.Sprintf("Promises were broken: %d violations.", len(s.Violations))
	}
	for _, a := range c.journal.Attempts() {
		p.Attempts = append(p.Attempts, timeline.Attempt{At: a.Return, Took: a.Return - a.Invoke, Outcome: outcomes[a.Outcome()]})
	}
	for _, r := range s.Runs {
		if !r.NotFired {
			p.Faults = append(p.Faults, timeline.Fault{
				Name: r.Name, Lane: string(r.Victim), From: r.Injected, To: r.Healed, Back: r.Recovered, InFlight: r.InFlight,
			})
		}
	}
	slices.SortStableFunc(p.Faults, func(a, b timeline.Fault) int { return int(a.From - b.From) })
	for _, promise := range s.Promises {
		p.Promises = append(p.Promises, report.Promise{Text: string(promise.Rule), Broken: promise.Broken})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		t := s.Kinds[kind]
		p.Kinds = append(p.Kinds, timeline.Kind{Name: kind, Faults: t.Faults, InFlight: t.InFlight, Hits: t.Hits, Slowest: t.Slowest})
	}
	return p
}

// tiles without a value are left out.
func tiles(s summary) []report.Tile {
	seconds := func(d time.Duration, measured int) string {
		if measured == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return []report.Tile{
		{Value: report.Short(s.Duration.Round(time.Second)), Label: "of load"}, {Value: strconv.Itoa(s.Faults), Label: "faults"},
		{Value: strconv.Itoa(s.Attempts), Label: "attempts"}, {Value: strconv.Itoa(s.Keys), Label: "keys"},
		{Value: strconv.Itoa(s.Effects["charges"]), Label: "charges"}, {Value: strconv.Itoa(s.PassedOn), Label: "POSTs passed on by nginx"},
		{Value: seconds(s.Death.Nginx, s.Deaths), Label: "nginx without an answer after a death"},
		{Value: seconds(s.Death.Decided, s.Death.Keys), Label: "until a dead replica's key was decided"}, {Value: strconv.Itoa(len(s.Violations)), Label: "violations"},
	}
}
