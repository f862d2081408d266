package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/conformance"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// lookAgain is the pause between two readings of the replicas' metrics.
const lookAgain = 2 * time.Second

// verify reads everything back and applies every rule.
func (c *campaign) verify(ctx context.Context) error {
	// Relays back off while Redis is away, and what a dead consumer had read is claimed half a
	// minute later.
	var err error
	if c.books, err = c.awaitBooks(ctx, books.Books.Consumed); err != nil {
		return err
	}
	if err := c.deliverAgain(ctx); err != nil {
		return err
	}
	attempts := c.journal.Attempts()
	c.Score = verify.Count(attempts, c.books, stuckAfter)
	if c.Counts[posts], err = c.stack.PassedOn(); err != nil {
		return err
	}
	if c.cfg.other() { // what it does wrong is no failure; an inconclusive run is one
		c.Violations = c.inconclusive(attempts)
		return nil
	}
	records, recordsErr := read(ctx, c, books.Reader.Records)
	generated, generatedErr := conformance.Run(ctx, conformance.Config{
		Endpoints: map[string]string{stack.Nginx: c.wire.Endpoints[stack.Nginx], stack.API1: c.wire.Endpoints[stack.API1]},
		APIKey:    accounts[1], Customers: c.shop.Customers[accounts[1]],
		Requests: c.cfg.Generated, Seed: c.cfg.Seed,
	})
	var log bytes.Buffer
	logErr := c.stack.Logs(ctx, &log, []string{stack.Nginx}, false)
	readAt, replicasErr := c.stack.ReadByReplicas(ctx)
	byNginx, nginxErr := c.stack.ReadByNginx()
	if err := errors.Join(recordsErr, generatedErr, logErr, replicasErr, nginxErr); err != nil {
		return fmt.Errorf("collect the evidence: %w", err)
	}
	maps.Copy(readAt, byNginx) // which read it before the replica
	// nginx keeps idle connections for 15 seconds, each of which is a goroutine at a replica.
	leaking, deadline := leaks(c.baseline, c.measure(ctx)), time.Now().Add(c.cfg.Patience)
	for len(leaking) > 0 && time.Now().Before(deadline) && wait.Pause(ctx, lookAgain) == nil {
		leaking = leaks(c.baseline, c.measure(ctx))
	}
	seen := c.witness.Found()
	released := releasesOf(seen)
	c.Violations = slices.Concat(c.unfinished, verify.StaleRecords(records), generated,
		verify.All(asRead(attempts, readAt, c.wire.Began), c.books, patience),
		deadWithoutCause(log.String(), c.Runs, c.wire.Began, time.Local), movedWithoutRedis(attempts, c.Runs),
		verify.InProgressForAReason(attempts, func(a journal.Attempt) bool { return passedOn(a, c.Runs) }),
		leases(seen, c.Runs), unserved(attempts, released, c.Runs),
		overloads(attempts, c.books, released, c.Runs), c.recoveries(), leaking, c.inconclusive(attempts))
	return nil
}

// deliverAgain has the provider send the events again that seem to have been acted on twice. One
// whose row stays as it is was not: the transaction that settled its payment or refund had the same
// microsecond.
func (c *campaign) deliverAgain(ctx context.Context) (err error) {
	suspects := slices.DeleteFunc(slices.Clone(c.books.ProviderEvents), func(e books.ProviderEvent) bool { return !e.ActedAgain() })
	if len(suspects) == 0 {
		return nil
	}
	for _, e := range suspects {
		if err := books.ReplayEvents(ctx, "http://"+c.stack.Addr(stack.PSP), e.Order); err != nil {
			return err
		}
	}
	c.books, err = read(ctx, c, books.Reader.Read)
	for i, e := range c.books.ProviderEvents {
		if slices.Contains(suspects, e) {
			c.books.ProviderEvents[i].Settled = false
			c.Counts[sameTime]++
		}
	}
	return err
}

// read reads from the stores: the books, the answers in Redis, or the event stream.
func read[T any](ctx context.Context, c *campaign, what func(books.Reader, context.Context) (T, error)) (T, error) {
	master, err := c.stack.RedisMaster(ctx)
	if err != nil {
		var none T
		return none, err
	}
	reader := books.Reader{
		DatabaseURL: stack.PostgresURL(c.stack.PostgresPrimary()), RedisAddr: master, ProviderURL: "http://" + c.stack.Addr(stack.PSP),
		MailsURL: "http://" + c.stack.Ops(stack.Mail), APIKeys: accounts, Opening: c.shop.Opening, Lost: c.lost, Since: c.lostAt,
	}
	return what(reader, ctx)
}

// awaitReconciled waits for the reconcilers, and keeps what they have left open. They pause for up
// to a minute between the questions to a provider that was in trouble.
func (c *campaign) awaitReconciled(ctx context.Context) error {
	held, err := c.awaitBooks(ctx, func(b books.Books) bool { return len(books.Unfinished(b)) == 0 })
	c.unfinished = books.Unfinished(held)
	return err
}

// awaitBooks reads the books until they are as they should be in the end, or patience is over.
func (c *campaign) awaitBooks(ctx context.Context, done func(books.Books) bool) (books.Books, error) {
	return read(ctx, c, func(r books.Reader, ctx context.Context) (books.Books, error) {
		return r.Await(ctx, c.cfg.Patience, done)
	})
}

// recoveries checks how soon the service was back after each healing, and after each death.
func (c *campaign) recoveries() (found []books.Violation) {
	check := func(rule books.Rule, r faultRun, took, within time.Duration, what string) {
		if took > within {
			found = append(found, books.Broken(rule, "%s at %.1fs: %s after %.1fs", r.Name, r.Injected.Seconds(), what, took.Seconds()))
		}
	}
	for _, r := range c.Runs {
		check(verify.Recovery, r, r.Took(), backWithin, "back")
		if r.Death != nil {
			check(verify.Recovery, r, r.Death.Nginx, nginxWithin, "nginx answered again")
			check(verify.KeysRecovered, r, r.Death.Decided, decidedWithin, "a running payment was decided")
		}
	}
	return found
}

// inconclusive fails a run that shows nothing: faults that met no request, or too little load.
func (c *campaign) inconclusive(attempts []journal.Attempt) (found []books.Violation) {
	complain := func(format string, args ...any) {
		found = append(found, books.Broken(verify.Conclusive, format, args...))
	}
	for n := range c.Runs {
		r := &c.Runs[n]
		for _, a := range attempts {
			if r.met(a.Invoke, a.Return) {
				r.InFlight++
			}
		}
	}
	for kind, t := range c.Tallies() {
		if t.InFlight == 0 {
			complain("%s met no request in flight", kind)
		}
		if t.Counted && t.Hits == 0 {
			complain("%s met nothing that it could break", kind)
		}
	}
	if rate := float64(len(attempts)) / c.Duration.Seconds(); rate < c.cfg.Floor {
		complain("%.1f attempts per second are below the floor of %.1f", rate, c.cfg.Floor)
	}
	repeats := false // a relay died after it had published, and Redis has lost nothing since
	for _, r := range c.Runs {
		repeats = r.breaks(fault.RelayRepeats) || repeats && !r.breaks(fault.RedisLoses)
	}
	if repeats && c.books.Repeated() == 0 {
		complain("a relay died between publishing and advancing, and yet no event is in the stream twice")
	}
	if len(c.baseline) < len(stack.Replicas) {
		complain("only %d replicas answered what they held before", len(c.baseline))
	}
	if len(c.Runs) == 0 {
		complain("no fault ran")
	}
	if c.cfg.System == control && c.Score.DoubledKeys == 0 {
		complain("nothing happened twice without any protection")
	}
	return found
}
