// Package verify decides whether a campaign kept every promise. It adds to the checks of the books
// the rules about what clients saw. Rules are pure functions, each tested with planted anomalies.
package verify

import (
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// The rules of this package, beside those of the books.
const (
	OneHistory       books.Rule = "one key has one effect and one answer"
	WaitedFor        books.Rule = "409 in progress only while another attempt runs"
	ReusedForAReason books.Rule = "422 reused only once another request's answer is kept"
	AnswersKept      books.Rule = "every answer seen is in PostgreSQL, byte for byte"
	RefusedNoEffect  books.Rule = "a final 4xx has no effect"
	RefusalsHold     books.Rule = "no older copy of a refused request acts"
	ChangesActOnce   books.Rule = "each change acts once, and in its time"
	LookUpsAgree     books.Rule = "look-ups agree with answers at every moment"
	NoStaleRecord    books.Rule = "no answer in Redis outlives its row"
	OwnerOnly        books.Rule = "only its owner changes a Redis record"
	LeaseKept        books.Rule = "a running attempt keeps its lease"
	FailsClosed      books.Rule = "payments are refused while Redis is down"
	HangUpServed     books.Rule = "a request is finished after its client hung up"
	TurnedAwayClean  books.Rule = "a request that was turned away left nothing behind"
	AnsweredFirst    books.Rule = "what was answered is answered again under overload"
	RoomLeft         books.Rule = "payments that wait for the provider leave room for orders"
	OthersServed     books.Rule = "greedy accounts and strangers take nothing from others"
	OnlyWholeCount   books.Rule = "requests that never finish take nothing from others"
	ReplicaAvailable books.Rule = "nginx never calls a healthy replica dead"
	Resources        books.Rule = "no goroutine, connection or waiter leaks"
	Recovery         books.Rule = "service back in 10 s after healing, 5 s after a death"
	KeysRecovered    books.Rule = "keys of a dead replica decided in lease + 2 s"
	Decided          books.Rule = "every key is decided in the end"
	AnswersConform   books.Rule = "every answer is one that openapi.yaml describes"
	Conclusive       books.Rule = "the run is conclusive: load and faults met"
)

// Rules are all rules of a campaign, in the order of a report.
var Rules = []books.Rule{
	OneHistory, WaitedFor, ReusedForAReason, AnswersKept, RefusedNoEffect, RefusalsHold, ChangesActOnce, LookUpsAgree, NoStaleRecord,
	books.OneKeyPerEffect, books.OneCharge, books.OneRefund, books.DeclinesLimited, books.LedgerBalances, books.WalletsMatch, books.StockMatches, books.OrdersMatch, books.EachProviderEventOnce, OwnerOnly,
	LeaseKept, FailsClosed, HangUpServed, books.NothingOpen, books.OneEventEach, books.EventsOnce, books.EachMailed, TurnedAwayClean, AnsweredFirst, RoomLeft, OnlyWholeCount, OthersServed, ReplicaAvailable,
	AnswersConform, Resources, Recovery, KeysRecovered, Decided, Conclusive,
}

// All applies the rules that need only the journal and the books. Patience bounds the check of one
// product's or customer's history.
func All(attempts []journal.Attempt, b books.Books, patience time.Duration) []books.Violation {
	keys := keysOf(attempts, b)
	return slices.Concat(
		check(OneHistory, keys, oneHistory), check(ReusedForAReason, keys, reusedForAReason),
		check(AnswersKept, keys, answersKept), check(RefusedNoEffect, keys, refusedHasNoEffect), check(RefusalsHold, keys, refusalHolds),
		changesActOnce(attempts, b, patience), check(Decided, keys, decided), check(LookUpsAgree, keys, lookUpsAgree), books.Check(b))
}

// redisSlack is how far the clocks of Redis and PostgreSQL may be apart.
const redisSlack = 2 * time.Second

// StaleRecords finds answers in Redis that outlive their row in PostgreSQL.
func StaleRecords(records []books.Record) (found []books.Violation) {
	for _, r := range records {
		switch {
		case !r.HasRow:
			found = append(found, books.Broken(NoStaleRecord, "%s has no row", r.Name))
		case r.Expires.After(r.RowExpires.Add(redisSlack)):
			found = append(found, books.Broken(NoStaleRecord, "%s is kept until %s, its row until %s", r.Name, r.Expires, r.RowExpires))
		}
	}
	return found
}
