package main

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

// excused says whether a run that excuses the rule was in force at some moment of a period.
func excused(rule books.Rule, runs []faultRun, from, to time.Duration) bool {
	return slices.ContainsFunc(runs, func(r faultRun) bool { return slices.Contains(r.Excuses, rule) && r.met(from, to) })
}

// nginxRecovers is how long a broken connection between nginx and a replica may show after it was
// healed.
const nginxRecovers = 5 * time.Second

// passedOn says whether nginx may have passed an attempt on, so that it meets its own first copy.
func passedOn(a journal.Attempt, runs []faultRun) bool {
	return a.Via == "nginx" && excused(verify.WaitedFor, runs, a.Invoke-nginxRecovers, a.Return)
}

// calledDead is a line of nginx's error log (ngx_log.c) about a replica that it takes out of use
// for fail_timeout: it did not answer in time, closed the connection, or refused it. "no live
// upstreams" is not among them: it says that all are busy (max_conns).
var calledDead = regexp.MustCompile(`(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[\w+\] .*?` +
	`(upstream timed out|upstream prematurely closed|connect\(\) failed|recv\(\) failed)`)

// deadWithoutCause finds the moments at which nginx called a replica dead that no fault had broken.
// It reads the log's times, which are whole seconds in the machine's time zone.
func deadWithoutCause(log string, runs []faultRun, began time.Time, zone *time.Location) (found []books.Violation) {
	for _, line := range calledDead.FindAllStringSubmatch(log, -1) {
		at, err := time.ParseInLocation("2006/01/02 15:04:05", line[1], zone)
		since := at.Sub(began)
		if err == nil && since >= 0 && !excused(verify.ReplicaAvailable, runs, since-nginxRecovers, since+time.Second) {
			found = append(found, books.Broken(verify.ReplicaAvailable, "at %.0fs: %s", since.Seconds(), line[2]))
		}
	}
	return found
}

// logDelay is how long a replica may take on a busy machine to log a request that has ended.
const logDelay = 250 * time.Millisecond

// asRead has the attempts at the times at which nginx or a replica read them, by its log: on a busy
// machine that may be after their client has sent the next one elsewhere, and for the servers it is
// the order that counts. An attempt whose client has left does not become newer when a replica
// reads it late, nor does one of a proxy that has told its time.
func asRead(attempts []journal.Attempt, read map[string]time.Time, began time.Time) []journal.Attempt {
	attempts = slices.Clone(attempts)
	for i, a := range attempts {
		if at, logged := read[a.RequestID]; logged && (a.Via == stack.Nginx || a.Error == "" && !a.Proxied) {
			slack := time.Millisecond // nginx's log has milliseconds
			if a.Via != stack.Nginx {
				slack = logDelay
			}
			attempts[i].Invoke = max(a.Invoke, at.Sub(began)-slack)
		}
	}
	return attempts
}

// moves has the operations that move money.
var moves = map[string]bool{"payment": true, "refund": true, "top-up": true}

// movedWithoutRedis is money that moved while Redis was down: two attempts could have asked the
// provider at once.
func movedWithoutRedis(attempts []journal.Attempt, runs []faultRun) (found []books.Violation) {
	for _, a := range attempts {
		within := func(r faultRun) bool { return r.breaks(fault.RedisDown) && a.Invoke > r.Held && a.Return < r.Healing }
		if moves[a.Operation] && a.Outcome() == journal.Succeeded && slices.ContainsFunc(runs, within) {
			found = append(found, books.Broken(verify.FailsClosed, "%s at %.1fs: answered %d",
				a.Operation, a.Invoke.Seconds(), a.Status).Of(a.ID()))
		}
	}
	return found
}

// promptly is how soon a request ends that its client's hanging up has cancelled. One that fails by
// itself has waited for longer: for a lock, for example, three seconds.
const promptly = time.Second

// unserved returns the attempts that ended with their client's connection: they released their key
// promptly although no fault excuses it.
func unserved(attempts []journal.Attempt, released map[string]time.Duration, runs []faultRun) (found []books.Violation) {
	for _, a := range attempts {
		at, ok := released[a.Key]
		if a.Purpose == journal.HangUp && a.Error != "" && ok && at-a.Return <= promptly && !excused(verify.HangUpServed, runs, a.Invoke, at) {
			found = append(found, books.Broken(verify.HangUpServed, "its client hung up at %.3fs, and its key was released at %.3fs",
				a.Return.Seconds(), at.Seconds()).Of(a.ID()))
		}
	}
	return found
}

// releasesOf are the times at which clients' keys were released, the first time for each.
func releasesOf(seen witness.Events) map[string]time.Duration {
	released := map[string]time.Duration{}
	for _, r := range slices.Backward(seen.Releases) {
		released[r.Record[strings.LastIndex(r.Record, ":")+1:]] = r.At
	}
	return released
}

// leases are the changes of records by attempts that did not own them, and the leases that ended
// while their owner lived and no fault excuses it.
func leases(seen witness.Events, runs []faultRun) (found []books.Violation) {
	for _, w := range seen.Foreign {
		found = append(found, books.Broken(verify.OwnerOnly, "%s at %.1fs: %s", w.Record, w.At.Seconds(), w.Detail))
	}
	for _, l := range seen.Losses {
		if !excused(verify.LeaseKept, runs, l.Since, l.At) {
			found = append(found, books.Broken(verify.LeaseKept, "%s: held from %.1fs, and its owner came back at %.1fs",
				l.Record, l.Since.Seconds(), l.At.Seconds()))
		}
	}
	return found
}

const (
	// mostRepeats is the share of repeated requests that may be turned away although they have an
	// answer: nginx does not know them, and on a machine whose processors are all taken Redis may
	// be too slow to tell. Without precedence it is nearly all of them.
	mostRepeats = 0.25
	// mostOthers is the share of requests that may be turned away beside some that never finish,
	// beside those of a greedy account and beside those of strangers.
	mostOthers = 0.1
	// fewest make a share.
	fewest = 50
	// slots is how many requests work at a replica at once: its DATABASE_MAX_CONNS less those that
	// the workers need.
	slots = 16
	// manyPayments is how many wait at once, at most, if they hold slots. A client sees the end of
	// a wait late, so a slot can have two of them at a moment. With free slots it is 165 or more.
	manyPayments = 2 * slots
)

// overloads finds what overload may not do: leave something of what was turned away, turn away what
// is answered without the database, turn away orders because payments wait, and turn away anything
// because requests stay unfinished, because another account is greedy or because of strangers.
func overloads(attempts []journal.Attempt, b books.Books, released map[string]time.Duration, runs []faultRun) []books.Violation {
	found := verify.TurnedAwayLeftNothing(attempts, b, released, func(a journal.Attempt) bool { return passedOn(a, runs) })
	found = append(found, ordersBesidePayments(attempts, runs)...)
	greedy, answered := map[string]bool{}, map[books.KeyID]time.Duration{}
	for _, a := range attempts {
		greedy[a.Account] = greedy[a.Account] || a.Purpose == journal.Greedy
		if a.Outcome() != journal.Succeeded {
			continue
		}
		if first, known := answered[a.ID()]; !known || a.Return < first {
			answered[a.ID()] = a.Return
		}
	}
	again := func(a journal.Attempt) bool {
		first, known := answered[a.ID()]
		return a.Key != "" && a.LookUp == nil && known && first < a.Invoke
	}
	nginx := func(a journal.Attempt) bool { return a.Via == stack.Nginx }
	others := func(a journal.Attempt) bool { return !greedy[a.Account] }
	for _, share := range []struct {
		rule   books.Rule
		damage fault.Damage
		of     func(journal.Attempt) bool
		most   float64
	}{
		{verify.AnsweredFirst, fault.Overloads, again, mostRepeats},
		{verify.OnlyWholeCount, fault.StaysUnfinished, nginx, mostOthers},
		{verify.OthersServed, fault.StaysUnread, nginx, mostOthers},
		{verify.OthersServed, fault.AccountFloods, others, mostOthers},
		{verify.OthersServed, fault.StrangersFlood, others, mostOthers},
	} {
		all, away := 0, 0
		for _, a := range attempts {
			if share.of(a) && under(share.damage, a, runs) {
				all++
				if a.Outcome() == journal.TurnedAway || a.Status == http.StatusTooManyRequests {
					away++
				}
			}
		}
		if all >= fewest && float64(away) > share.most*float64(all) {
			found = append(found, books.Broken(share.rule, "while %s, %d of %d requests were turned away", share.damage, away, all))
		}
	}
	return found
}

// ordersBesidePayments finds out whether payments that wait for the provider hold the slots of
// their replica: then no more than manyPayments wait when an order is served. Two rates of orders
// would not show it, for they depend on the machine.
func ordersBesidePayments(attempts []journal.Attempt, runs []faultRun) []books.Violation {
	var payments []journal.Attempt
	var served []time.Duration
	for _, a := range attempts {
		if a.Purpose != journal.SlowPayer || a.Outcome() != journal.Succeeded || !under(fault.PaymentsWait, a, runs) {
			continue
		}
		if a.Operation == "order" {
			served = append(served, a.Return)
		} else if a.Return-a.Invoke >= workload.PaymentTakes && !a.Replayed {
			payments = append(payments, a)
		}
	}
	most := 0 // of the payments that waited when an order was served
	for _, at := range served {
		waiting := 0
		for _, p := range payments {
			if p.Return-workload.PaymentTakes <= at && at <= p.Return {
				waiting++
			}
		}
		most = max(most, waiting)
	}
	if len(payments) <= manyPayments || most > manyPayments {
		return nil
	}
	return []books.Violation{books.Broken(verify.RoomLeft,
		"of %d payments no more than %d waited for the provider when an order was served, and a replica has %d slots", len(payments), most, slots)}
}

// under says whether an attempt met this damage and no other fault, nor what one has left: an
// answer that Redis has lost is one for the database.
func under(damage fault.Damage, a journal.Attempt, runs []faultRun) bool {
	does := func(r faultRun) bool { return r.breaks(damage) && r.met(a.Invoke, a.Return) }
	other := func(r faultRun) bool { return !r.breaks(damage) && r.met(a.Invoke-nginxRecovers, a.Return) }
	return slices.ContainsFunc(runs, does) && !slices.ContainsFunc(runs, other)
}
