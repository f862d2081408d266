package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const (
	// readTimeout bounds the reading of the books.
	readTimeout = time.Minute
	// reconcileTimeout is the deadline of a payment that nobody asks for: the grace, and pauses up to a minute between the
	// questions to a provider that was in trouble.
	reconcileTimeout = 75 * time.Second
	// consumeTimeout bounds the wait for events: relays back off while Redis is away, and what a dead consumer took is taken over
	// half a minute later.
	consumeTimeout = 75 * time.Second
	// idleTimeout is how long nginx keeps connections to a replica that nobody uses (its keepalive_timeout of 60 s), and a little:
	// each of them is a goroutine there, and one that goes by itself is not left over.
	idleTimeout = 65 * time.Second
	// lookAgain is how often the books are looked at meanwhile.
	lookAgain = 2 * time.Second
)

// judge reads everything back and applies every rule.
func (c *campaign) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout+consumeTimeout+idleTimeout)
	defer cancel()
	for deadline := time.Now().Add(min(consumeTimeout, c.cfg.Patience)); ; wait(ctx, lookAgain) {
		var err error
		if c.books, err = c.read(ctx); err != nil {
			return err
		}
		if c.books.Consumed() || time.Now().After(deadline) {
			break
		}
	}
	attempts := c.journal.Attempts()
	c.score = verify.Count(attempts, c.books, stuckAfter)
	if c.cfg.other() {
		c.violations = c.proof(attempts)
		return nil
	}
	c.violations = slices.Concat(c.unfinished, verify.All(attempts, c.books, patience), c.witnessed(attempts), c.recoveries(),
		c.awaitIdle(ctx), c.proof(attempts))
	return nil
}

// read reads the books as they are now.
func (c *campaign) read(ctx context.Context) (verify.Books, error) {
	reader, err := c.reader(ctx)
	if err != nil {
		return verify.Books{}, err
	}
	return reader.Read(ctx)
}

// reader reads what Redis holds where it is now.
func (c *campaign) reader(ctx context.Context) (verify.Reader, error) {
	redis, err := c.stack.RedisMaster(ctx)
	return verify.Reader{DatabaseURL: stack.PostgresURL(c.stack.Addr(stack.Postgres)), RedisAddr: redis,
		ProviderURL: "http://" + c.stack.Addr(stack.PSP), APIKeys: accounts, Opening: c.shop.Opening, Lost: c.losses.before, Since: c.losses.since}, err
}

// awaitReconciled gives the reconcilers their time, and enters what they have left open.
func (c *campaign) awaitReconciled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout+reconcileTimeout)
	defer cancel()
	for deadline := time.Now().Add(min(reconcileTimeout, c.cfg.Patience)); ; wait(ctx, lookAgain) {
		books, err := c.read(ctx)
		if err != nil {
			return err
		}
		c.unfinished = verify.Unfinished(books)
		if len(c.unfinished) == 0 || time.Now().After(deadline) {
			return nil
		}
	}
}

// recoveries wants the service back soon after each healing, and sooner after a death.
func (c *campaign) recoveries() []verify.Violation {
	var found []verify.Violation
	check := func(rule verify.Rule, i injury, took, within time.Duration, what string) {
		if took > within {
			found = append(found, verify.Violation{Rule: rule, Detail: fmt.Sprintf("%s at %.1fs: %s after %.1fs", i.Name, i.Injected.Seconds(), what, took.Seconds())})
		}
	}
	for _, i := range c.injuries {
		check(verify.Recovery, i, i.Recovered-i.Healed, backWithin, "back")
		if i.Death != nil {
			check(verify.Recovery, i, i.Death.Door, doorWithin, "nginx answered again")
			check(verify.Orphans, i, i.Death.Decided, decidedWithin, "a payment that was under way was decided")
		}
	}
	return found
}

// awaitIdle gives the replicas the time to drop what nobody uses, and tells what they have left over.
func (c *campaign) awaitIdle(ctx context.Context) []verify.Violation {
	for deadline := time.Now().Add(min(idleTimeout, c.cfg.Patience)); ; wait(ctx, lookAgain) {
		found := leftOver(c.baseline, c.measure(ctx))
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// leftOver compares what the replicas hold with what they held before; those that were restarted are compared with that, too.
func leftOver(baseline, after map[string]usage) []verify.Violation {
	var found []verify.Violation
	for name, before := range baseline {
		is := after[name] // nothing, if it did not answer
		if is.goroutines == 0 || is.goroutines > before.goroutines+slackGoroutines || is.connections > slackConnections || is.waiters > 0 {
			found = append(found, verify.Violation{Rule: verify.Resources, Detail: fmt.Sprintf("%s: %.0f goroutines (%.0f before), %.0f connections in use, %.0f waiters",
				name, is.goroutines, before.goroutines, is.connections, is.waiters)})
		}
	}
	return found
}

// proof fails a run that proves nothing: faults that met no request, or a load that was none.
func (c *campaign) proof(attempts []journal.Attempt) []verify.Violation {
	var found []verify.Violation
	complain := func(format string, args ...any) {
		found = append(found, verify.Violation{Rule: verify.Proof, Detail: fmt.Sprintf(format, args...)})
	}
	met, hits := map[string]int{}, map[string]int{}
	for n := range c.injuries {
		i := &c.injuries[n]
		for _, a := range attempts {
			if a.Invoke < i.Healed && a.Return > i.Injected {
				i.InFlight++
			}
		}
		if !i.NotFired {
			met[i.Kind] += i.InFlight
		} else {
			met[i.Kind] += 0
		}
		if i.Hits != nil {
			hits[i.Kind] += *i.Hits
		}
	}
	for kind, n := range hits {
		if n == 0 {
			complain("%s met nothing that it could spoil", kind)
		}
	}
	for kind, n := range met {
		if n == 0 {
			complain("%s met no request in flight", kind)
		}
	}
	if rate := float64(len(attempts)) / c.stopped.Seconds(); rate < c.cfg.Floor {
		complain("%.1f attempts per second are below the floor of %.1f", rate, c.cfg.Floor)
	}
	if c.republishes() && c.books.Repeated() == 0 {
		complain("a relay died between publishing and marking, and yet no event is in the stream twice")
	}
	if len(c.baseline) != len(c.target.Ops) {
		complain("only %d replicas told what they held before", len(c.baseline))
	}
	if len(c.injuries) == 0 {
		complain("nothing was hurt")
	}
	return found
}

// republishes says whether a relay died after it had published, and Redis lost nothing since.
func (c *campaign) republishes() bool {
	died := false
	for _, i := range c.injuries {
		died = i.Kind == "kill after-publish" && !i.NotFired || died && !i.Loses
	}
	return died
}
