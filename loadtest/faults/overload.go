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
	// fewestServed is how many orders are served beside payments that only wait, as a share of
	// those of as many clients at the other replica. On a machine at its limit it is 0.88. If
	// payments keep their slots it is 0.49 to 0.54.
	fewestServed = 0.7
	// mostOthers is the share of requests that may be turned away beside some that never finish,
	// beside those of a greedy account and beside those of strangers.
	mostOthers = 0.1
	// fewest make a share, and manyOrders one of two counts.
	fewest, manyOrders = 50, 200
)

// overloads finds what overload may not do: leave something of what was turned away, turn away what
// is answered without the database, turn away orders because payments wait, and turn away anything
// because requests stay unfinished, because another account is greedy or because of strangers.
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
	beside := verify.OrdersServed(journal.SlowPayer, attempts, payments)
	elsewhere := verify.OrdersServed(journal.Bystander, attempts, payments)
	if elsewhere >= manyOrders && float64(beside) < fewestServed*float64(elsewhere) {
		found = append(found, books.Broken(verify.RoomLeft,
			"%d orders were served beside payments that waited, and %d of as many clients at the other replica", beside, elsewhere))
	}
	all, away = verify.ThroughNginx(attempts, func(a journal.Attempt) bool { return under(fault.StaysUnfinished, a, runs) })
	if tooMany(away, all, mostOthers) {
		found = append(found, books.Broken(verify.OnlyWholeCount, "of %d requests beside unfinished ones, %d were turned away", all, away))
	}
	all, away = verify.BesideTheGreedy(attempts, func(a journal.Attempt) bool { return under(fault.AccountFloods, a, runs) })
	if tooMany(away, all, mostOthers) {
		found = append(found, books.Broken(verify.OthersServed, "of %d requests of other accounts beside a greedy one, %d were refused", all, away))
	}
	all, away = verify.BesideTheGreedy(attempts, func(a journal.Attempt) bool { return under(fault.StrangersFlood, a, runs) })
	if tooMany(away, all, mostOthers) {
		found = append(found, books.Broken(verify.OthersServed, "of %d requests beside strangers, %d were refused", all, away))
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
