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
	// mostTurnedAway is the share of requests that may be turned away although there is room for
	// them. They may be repeated requests that have an answer: nginx does not know them, and on a
	// machine whose processors are all taken Redis may be too slow to tell. They may be orders
	// beside payments that only wait. Without the safeguards it is nearly all of them.
	mostTurnedAway = 0.25
	// fewest make a share.
	fewest = 50
)

// overloads finds what overload may not do: leave something of what was turned away, turn away what
// is answered without the database, and turn away orders because payments wait.
func overloads(attempts []journal.Attempt, b books.Books, releases []witness.Release, runs []faultRun) []books.Violation {
	records := make([]string, len(releases))
	for i, r := range releases {
		records[i] = r.Record[strings.LastIndex(r.Record, ":")+1:]
	}
	sentTwice := func(a journal.Attempt) bool { return passedOn(a, runs) }
	found := verify.TurnedAwayLeftNothing(attempts, b, records, sentTwice)
	all, away := verify.AnsweredAgain(attempts, func(a journal.Attempt) bool { return under(fault.Overloads, a, runs) })
	if tooMany(away, all) {
		found = append(found, books.Broken(verify.AnsweredFirst, "of %d requests that had an answer, %d were turned away", all, away))
	}
	all, away = verify.SlowPayersOrders(attempts, func(a journal.Attempt) bool { return under(fault.PaymentsWait, a, runs) })
	if tooMany(away, all) {
		found = append(found, books.Broken(verify.RoomLeft, "of %d orders beside payments that waited, %d were turned away", all, away))
	}
	return found
}

func tooMany(away, all int) bool { return all >= fewest && float64(away) > mostTurnedAway*float64(all) }

// under says whether an attempt met this damage and no other fault, nor what one has left: an
// answer that Redis has lost is one for the database.
func under(damage fault.Damage, a journal.Attempt, runs []faultRun) bool {
	does := func(r faultRun) bool { return r.breaks(damage) && r.Injected < a.Return && r.Healed > a.Invoke }
	other := func(r faultRun) bool {
		return !r.breaks(damage) && r.Injected < a.Return && r.Healed+nginxRecovers > a.Invoke
	}
	return slices.ContainsFunc(runs, does) && !slices.ContainsFunc(runs, other)
}
