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
	// mostRepeats is the share of repeated requests that may be turned away although they have an
	// answer: nginx does not know them, and on a machine whose processors are all taken Redis may
	// be too slow to tell. Without precedence it is nearly all of them.
	mostRepeats = 0.25
	// mostMore is how much larger the share of orders that are turned away may be beside payments
	// that only wait than at the other replica, where the machine has to serve as many orders.
	mostMore = 0.3
	// mostOthers is the share of requests that may be turned away beside some that never finish.
	mostOthers = 0.1
	// fewest make a share.
	fewest = 50
)

// overloads finds what overload may not do: leave something of what was turned away, turn away what
// is answered without the database, turn away orders because payments wait, and turn away anything
// because requests stay unfinished.
func overloads(attempts []journal.Attempt, b books.Books, releases []witness.Release, runs []faultRun) []books.Violation {
	records := make([]string, len(releases))
	for i, r := range releases {
		records[i] = r.Record[strings.LastIndex(r.Record, ":")+1:]
	}
	sentTwice := func(a journal.Attempt) bool { return passedOn(a, runs) }
	found := verify.TurnedAwayLeftNothing(attempts, b, records, sentTwice)
	all, away := verify.AnsweredAgain(attempts, func(a journal.Attempt) bool { return under(fault.Overloads, a, runs) })
	if tooMany(away, all, mostRepeats) {
		found = append(found, books.Broken(verify.AnsweredFirst, "of %d requests that had an answer, %d were turned away", all, away))
	}
	payments := func(a journal.Attempt) bool { return under(fault.PaymentsWait, a, runs) }
	all, away = verify.OrdersOf(journal.SlowPayer, attempts, payments)
	others, othersAway := verify.OrdersOf(journal.Bystander, attempts, payments)
	if others >= fewest && tooMany(away, all, mostMore+float64(othersAway)/float64(others)) {
		found = append(found, books.Broken(verify.RoomLeft,
			"of %d orders beside payments that waited, %d were turned away, and %d of %d at the other replica", all, away, othersAway, others))
	}
	all, away = verify.ThroughNginx(attempts, func(a journal.Attempt) bool { return under(fault.StaysUnfinished, a, runs) })
	if tooMany(away, all, mostOthers) {
		found = append(found, books.Broken(verify.OnlyWholeCount, "of %d requests beside unfinished ones, %d were turned away", all, away))
	}
	return found
}

func tooMany(away, all int, most float64) bool {
	return all >= fewest && float64(away) > most*float64(all)
}

// under says whether an attempt met this damage and no other fault, nor what one has left: an
// answer that Redis has lost is one for the database.
func under(damage fault.Damage, a journal.Attempt, runs []faultRun) bool {
	does := func(r faultRun) bool { return r.breaks(damage) && r.Injected < a.Return && r.Healed > a.Invoke }
	other := func(r faultRun) bool {
		return !r.breaks(damage) && r.Injected < a.Return && r.Healed+nginxRecovers > a.Invoke
	}
	return slices.ContainsFunc(runs, does) && !slices.ContainsFunc(runs, other)
}
