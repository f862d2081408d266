package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
)

// observed applies the rules that need the times of the faults, or Redis's own log.
func (c *campaign) observed(attempts []journal.Attempt) []books.Violation {
	mayMeetItself := func(a journal.Attempt) bool { return passedOn(a, c.runs) }
	found := slices.Concat(movedWithoutRedis(attempts, c.runs), verify.InProgressForAReason(attempts, mayMeetItself))
	if c.witness == nil {
		return slices.Concat(found, overloads(attempts, c.books, nil, c.runs))
	}
	writes, losses := c.witness.Found()
	return slices.Concat(found, foreignWrites(writes, c.wire.Began), lostLeases(losses, c.runs, c.wire.Began),
		unserved(attempts, c.witness.Releases(), c.runs, c.wire.Began), overloads(attempts, c.books, c.witness.Releases(), c.runs))
}

// nginxRecovers is how long a broken connection between nginx and a replica may show after it was
// healed.
const nginxRecovers = 5 * time.Second

// passedOn says whether nginx may have passed an attempt on, so that it meets its own first copy.
func passedOn(a journal.Attempt, runs []faultRun) bool {
	return a.Via == "nginx" && excused(verify.WaitedFor, runs, a.Invoke-nginxRecovers, a.Return)
}

// promptly is how soon a request ends that its client's hanging up has cancelled. One that fails by
// itself has waited for longer: for a lock, for example, three seconds.
const promptly = time.Second

// unserved returns the attempts that ended with their client's connection: they released their key
// promptly although no fault excuses it.
func unserved(attempts []journal.Attempt, releases []witness.Release, runs []faultRun, began time.Time) []books.Violation {
	released := map[string]time.Duration{} // by key, the first time
	for _, r := range slices.Backward(releases) {
		released[r.Record[strings.LastIndex(r.Record, ":")+1:]] = r.At.Sub(began)
	}
	var found []books.Violation
	for _, a := range attempts {
		at, ok := released[a.Key]
		if a.Purpose != journal.HangUp || a.Error == "" || !ok || at-a.Return > promptly || excused(verify.HangUpServed, runs, a.Invoke, at) {
			continue
		}
		found = append(found, books.Violation{
			Rule: verify.HangUpServed, Account: a.Account, Key: a.Key,
			Detail: fmt.Sprintf("its client hung up at %.3fs, and its key was released at %.3fs", a.Return.Seconds(), at.Seconds()),
		})
	}
	return found
}

// foreignWrites are changes of records by attempts that did not own them.
func foreignWrites(writes []witness.ForeignWrite, began time.Time) []books.Violation {
	var found []books.Violation
	for _, w := range writes {
		found = append(found, books.Violation{
			Rule: verify.OwnerOnly, Detail: fmt.Sprintf("%s at %.1fs: %s", w.Record, w.At.Sub(began).Seconds(), w.Detail),
		})
	}
	return found
}

// lostLeases are the leases that ended while their owner lived and no fault excuses it.
func lostLeases(losses []witness.Loss, runs []faultRun, began time.Time) []books.Violation {
	var found []books.Violation
	for _, l := range losses {
		from, to := l.From.Sub(began), l.To.Sub(began)
		if !excused(verify.LeaseKept, runs, from, to) {
			found = append(found, books.Violation{Rule: verify.LeaseKept, Detail: fmt.Sprintf(
				"%s: held from %.1fs, and its owner came back at %.1fs", l.Record, from.Seconds(), to.Seconds())})
		}
	}
	return found
}

// movesMoney are the operations that are refused while Redis is down.
var movesMoney = []string{"payment", "refund", "top-up"}

// movedWithoutRedis is money that moved while Redis was down: two attempts could have asked the
// provider at once.
func movedWithoutRedis(attempts []journal.Attempt, runs []faultRun) []books.Violation {
	var found []books.Violation
	for _, r := range runs {
		if !r.breaks(fault.RedisDown) {
			continue
		}
		for _, a := range attempts {
			within := a.Invoke > r.Held && a.Return < r.Healing
			if within && a.Outcome() == journal.Succeeded && slices.Contains(movesMoney, a.Operation) {
				found = append(found, books.Violation{
					Rule: verify.FailsClosed, Account: a.Account, Key: a.Key,
					Detail: fmt.Sprintf("%s at %.1fs: answered %d", a.Operation, a.Invoke.Seconds(), a.Status),
				})
			}
		}
	}
	return found
}
