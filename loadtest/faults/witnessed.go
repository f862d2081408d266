package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
)

// sparesLeases are the beginnings of the faults' kinds that reach neither a replica as a whole nor Redis's records.
var sparesLeases = []string{"request pause", "provider", "webhooks", "postgres", "nginx cut off", "answers cut in half", "redis script flush"}

// witnessed is what Redis's log and the times of the faults tell.
func (c *campaign) witnessed(attempts []journal.Attempt) []verify.Violation {
	told := slices.Concat(unrefused(attempts, c.injuries),
		verify.WaitsForSomebody(attempts, func(a journal.Attempt) bool { return sentTwice(a, c.injuries) }))
	if c.witness == nil {
		return told
	}
	trespasses, losses := c.witness.Found()
	return slices.Concat(told, unheld(trespasses, c.wire.Began), lost(losses, c.injuries, c.wire.Began),
		unserved(attempts, c.witness.Releases(), c.injuries, c.wire.Began))
}

// sparesNginx are the beginnings of the faults' kinds that break no connection between nginx and a replica; what breaks one may show
// for a while after it was healed.
var sparesNginx = []string{"request pause", "redis", "provider", "webhooks", "postgres", "slow link", "inner answers"}

const nginxRecovers = 5 * time.Second

// sentTwice says whether nginx may have passed an attempt on: it is told to wait for itself, then.
func sentTwice(a journal.Attempt, injuries []injury) bool {
	return a.Via == "nginx" && slices.ContainsFunc(injuries, func(i injury) bool {
		return !i.isOneOf(sparesNginx) && i.Injected < a.Return && i.Healed+nginxRecovers > a.Invoke
	})
}

// sparesOrders are the beginnings of the faults' kinds that placing an order has nothing to do with.
var sparesOrders = []string{"provider", "webhooks", "redis script flush"}

// unserved are attempts that ended with their client's connection: they gave their key up while nothing was hurt.
func unserved(attempts []journal.Attempt, releases []witness.Release, injuries []injury, began time.Time) []verify.Violation {
	released := map[string]time.Duration{} // by key, the first time
	for _, r := range slices.Backward(releases) {
		released[r.Record[strings.LastIndex(r.Record, ":")+1:]] = r.At.Sub(began)
	}
	var found []verify.Violation
	for _, a := range attempts {
		at, gaveUp := released[a.Key]
		if a.Purpose != journal.HangUp || a.Error == "" || !gaveUp ||
			slices.ContainsFunc(injuries, func(i injury) bool { return !i.isOneOf(sparesOrders) && i.Injected < at && i.Healed > a.Invoke }) {
			continue
		}
		found = append(found, verify.Violation{Rule: verify.Served, Account: a.Account, Key: a.Key,
			Detail: fmt.Sprintf("its client hung up at %.3fs, and it was given up at %.3fs", a.Return.Seconds(), at.Seconds())})
	}
	return found
}

// unheld is what was done to records by others than their holders.
func unheld(trespasses []witness.Trespass, began time.Time) []verify.Violation {
	var found []verify.Violation
	for _, t := range trespasses {
		found = append(found, verify.Violation{Rule: verify.OneHolder, Detail: fmt.Sprintf("%s at %.1fs: %s", t.Record, t.At.Sub(began).Seconds(), t.Detail)})
	}
	return found
}

// lost are the leases that ended while nothing was hurt that they depend on.
func lost(losses []witness.Loss, injuries []injury, began time.Time) []verify.Violation {
	var found []verify.Violation
	for _, l := range losses {
		from, to := l.From.Sub(began), l.To.Sub(began)
		if !slices.ContainsFunc(injuries, func(i injury) bool { return i.mayEndLeases() && i.Injected < to && i.Healed > from }) {
			found = append(found, verify.Violation{Rule: verify.LeaseKept,
				Detail: fmt.Sprintf("%s: held from %.1fs, and its holder came back at %.1fs", l.Record, from.Seconds(), to.Seconds())})
		}
	}
	return found
}

// mayEndLeases also says so of a request that is paused right after it acquired its key: its heartbeat has not begun yet.
func (i injury) mayEndLeases() bool {
	return !i.isOneOf(sparesLeases) || i.Kind == "request pause" && strings.HasSuffix(i.Name, "after-acquire")
}

func (i injury) isOneOf(beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(kind string) bool { return strings.HasPrefix(i.Kind, kind) })
}

// unrefused is money that moved while Redis was dead, and two attempts could have asked the provider at once.
func unrefused(attempts []journal.Attempt, injuries []injury) []verify.Violation {
	var found []verify.Violation
	for _, i := range injuries {
		if i.Kind != "redis kill" || i.NotFired {
			continue
		}
		for _, a := range attempts {
			moves := a.Operation == "payment" || a.Operation == "refund" || a.Operation == "top-up"
			if moves && a.Outcome() == journal.Succeeded && a.Invoke > i.Held && a.Return < i.Healing {
				found = append(found, verify.Violation{Rule: verify.FailsClosed, Account: a.Account, Key: a.Key,
					Detail: fmt.Sprintf("%s at %.1fs: answered %d", a.Operation, a.Invoke.Seconds(), a.Status)})
			}
		}
	}
	return found
}
