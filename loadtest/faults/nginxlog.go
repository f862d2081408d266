package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
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
