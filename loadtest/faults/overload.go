package main

import (
	"slices"
	"strings"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
)

const (
	// mostTurnedAway is the share of repeated requests that may be turned away although they have
	// an answer: nginx does not know them, and on a machine whose processors are all taken Redis
	// may be too slow to tell. Without precedence it is nearly all of them.
	mostTurnedAway = 0.25
	// fewestRepeats make a share.
	fewestRepeats = 50
)

// overloads finds what overload may not do: leave something of what was turned away, and turn away
// what is answered without the database.
func overloads(attempts []journal.Attempt, b books.Books, releases []witness.Release, runs []faultRun) []books.Violation {
	records := make([]string, len(releases))
	for i, r := range releases {
		records[i] = r.Record[strings.LastIndex(r.Record, ":")+1:]
	}
	sentTwice := func(a journal.Attempt) bool { return passedOn(a, runs) }
	found := verify.TurnedAwayLeftNothing(attempts, b, records, sentTwice)
	all, away := verify.AnsweredAgain(attempts, func(a journal.Attempt) bool { return underOverloadAlone(a, runs) })
	if all >= fewestRepeats && float64(away) > mostTurnedAway*float64(all) {
		found = append(found, books.Broken(verify.AnsweredFirst, "of %d requests that had an answer, %d were turned away", all, away))
	}
	return found
}

// underOverloadAlone says whether an attempt met overload and no other fault, nor what one has
// left: an answer that Redis has lost is one for the database.
func underOverloadAlone(a journal.Attempt, runs []faultRun) bool {
	meets := func(r faultRun) bool { return r.Injected < a.Return && r.Healed > a.Invoke }
	overload := func(r faultRun) bool { return r.breaks(fault.Overloads) && meets(r) }
	other := func(r faultRun) bool {
		return !r.breaks(fault.Overloads) && r.Injected < a.Return && r.Healed+nginxRecovers > a.Invoke
	}
	return slices.ContainsFunc(runs, overload) && !slices.ContainsFunc(runs, other)
}
