package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
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

// pageOf is a campaign as an HTML page: throughput and latency over time with the fault runs, the
// promises, and the kinds of fault.
func pageOf(s result, attempts []journal.Attempt, evidence string) (page report.Page, err error) {
	var bars []report.Bar
	for _, r := range s.Runs {
		if !r.NotFired {
			bars = append(bars, report.Bar{Lane: r.Kind, From: r.Injected, To: r.Healed, Tail: r.Took()})
		}
	}
	kinds := report.Table{Title: "Kinds of fault", Header: []string{"Kind", "runs", "requests in flight", "hits", "slowest recovery"},
		Note: "“Hits” are the answers and events that the fault changed, or the requests that nginx passed on to the other replica, where the kind can count them."}
	tallies := s.Tallies()
	for _, kind := range slices.Sorted(maps.Keys(tallies)) {
		if t := tallies[kind]; t.Faults > 0 {
			kinds.Rows = append(kinds.Rows, []any{kind, t.Faults, t.InFlight, t.Hits, report.Seconds(t.Slowest)})
		}
	}
	page = report.Page{Title: fmt.Sprintf("oncepay under %d faults", s.Faults), Verdict: fmt.Sprintf("All %d promises were kept.", len(s.Promises)),
		Broken: len(s.Violations) > 0, Tiles: tiles(s), Evidence: evidence, Promises: s.Promises, Tables: []report.Table{kinds},
		Legend:  "Each bar is a fault, and its pale end the time until every endpoint answered again.",
		Command: s.Command, NotCovered: notCovered, Notes: []string{s.Date.Format(time.RFC1123) + ": oncepay " + s.Commit + ", " + s.Versions,
			"The faults and the clients' choices follow from the seed; what meets what, in which microsecond, does not."}}
	if page.Broken {
		page.Verdict = fmt.Sprintf("Promises were broken: %d violations.", len(s.Violations))
	}
	page.Picture, err = report.Draw(attempts, []report.Line{{Name: "all", Of: func(journal.Attempt) bool { return true }}}, bars)
	return page, err
}

func tiles(s result) []report.Tile {
	tiles := []report.Tile{
		{Value: s.Duration.Round(time.Second).String(), Label: "of load"}, {Value: strconv.Itoa(s.Faults), Label: "faults"},
		{Value: strconv.Itoa(s.Attempts), Label: "attempts"}, {Value: strconv.Itoa(s.Keys), Label: "keys"},
		{Value: strconv.Itoa(s.Counts[charges]), Label: charges}, {Value: strconv.Itoa(s.Counts[posts]), Label: posts},
		{Value: strconv.Itoa(len(s.Violations)), Label: "violations"},
	}
	if death := s.Tally().Death; death.Keys > 0 {
		tiles = append(tiles, report.Tile{Value: report.Seconds(death.Nginx), Label: "nginx without an answer after a death"},
			report.Tile{Value: report.Seconds(death.Decided), Label: "until a dead replica's key was decided"})
	}
	return tiles
}
