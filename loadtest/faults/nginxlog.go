package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// calledDead is a line of nginx's error log (ngx_log.c) about a replica that it takes out of use
// for fail_timeout: it did not answer in time, closed the connection, or refused it. "no live
// upstreams" is not among them: it says that all are busy (max_conns).
var calledDead = regexp.MustCompile(`(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[\w+\] .*?` +
	`(upstream timed out|upstream prematurely closed|connect\(\) failed|recv\(\) failed)`)

// replicasAvailable finds the moments at which nginx called a replica dead that no fault had
// broken.
func (c *campaign) replicasAvailable(ctx context.Context) ([]books.Violation, error) {
	var log bytes.Buffer
	if err := c.stack.Logs(ctx, &log, []string{stack.Nginx}, false); err != nil {
		return nil, fmt.Errorf("read nginx's log: %w", err)
	}
	return deadWithoutCause(log.String(), c.runs, c.wire.Began, time.Local), nil
}

// deadWithoutCause reads the log's times, which are whole seconds in the machine's time zone.
func deadWithoutCause(log string, runs []faultRun, began time.Time, zone *time.Location) []books.Violation {
	var found []books.Violation
	for _, line := range calledDead.FindAllStringSubmatch(log, -1) {
		at, err := time.ParseInLocation("2006/01/02 15:04:05", line[1], zone)
		since := at.Sub(began)
		if err != nil || since < 0 || excused(verify.ReplicaAvailable, runs, since-nginxRecovers, since+time.Second) {
			continue
		}
		found = append(found, books.Violation{
			Rule: verify.ReplicaAvailable, Detail: fmt.Sprintf("at %.0fs: %s", since.Seconds(), line[2]),
		})
	}
	return found
}

// excuseLateReads takes out the violations of which nginx's log proves that no server could know
// better, and counts them: nginx read the copy that acted only after the attempt that was refused
// had been sent, so that its client alone calls it the older one. The row must have the time of
// this copy: a time that a replica made up excuses nothing.
func excuseLateReads(found []books.Violation, attempts []journal.Attempt, b books.Books, started map[string]time.Time, began time.Time,
) (left []books.Violation, excused int) {
	history, claimed := verify.History(attempts), map[books.KeyID]time.Time{}
	for _, row := range b.Keys {
		claimed[row.KeyID] = row.AttemptedAt
	}
	left = slices.DeleteFunc(found, func(v books.Violation) bool {
		id := books.KeyID{Account: v.Account, Key: v.Key}
		return v.Rule == verify.RefusalsHold && readLate(history[id], claimed[id], started, began)
	})
	return left, len(found) - len(left)
}

// readLate says whether the attempt that claimed a key was read after the last one had been sent.
func readLate(attempts []journal.Attempt, claimed time.Time, started map[string]time.Time, began time.Time) bool {
	sent := slices.MaxFunc(attempts, func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) }).Invoke
	return slices.ContainsFunc(attempts, func(a journal.Attempt) bool {
		at, logged := started[a.RequestID]
		acted := logged && claimed.Sub(at).Abs() <= time.Millisecond // the replica cuts off a fraction
		return a.Via == "nginx" && a.Invoke < sent && acted && at.Sub(began) >= sent
	})
}
