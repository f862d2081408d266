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
	// publishTimeout bounds the wait for the relays: they back off while Redis is away.
	publishTimeout = 40 * time.Second
	// publishAgain is how often the outbox is looked at meanwhile.
	publishAgain = 2 * time.Second
)

// judge reads everything back and applies every rule.
func (c *campaign) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout+publishTimeout)
	defer cancel()
	reader := c.reader()
	for deadline := time.Now().Add(publishTimeout); ; wait(ctx, publishAgain) {
		var err error
		if c.books, err = reader.Read(ctx); err != nil {
			return err
		}
		if allPublished(c.books) || time.Now().After(deadline) {
			break
		}
	}
	attempts := c.journal.Attempts()
	c.violations = slices.Concat(c.unfinished, verify.All(attempts, c.books, patience), c.recoveries(), leftOver(c.baseline, c.measure(ctx)), c.proof(attempts))
	return nil
}

func (c *campaign) reader() verify.Reader {
	return verify.Reader{DatabaseURL: stack.PostgresURL(c.stack.Addr(stack.Postgres)), RedisAddr: c.stack.Addr(stack.Redis),
		ProviderURL: "http://" + c.stack.Addr(stack.PSP), APIKeys: accounts, Opening: c.shop.Opening}
}

// awaitReconciled gives the reconcilers their time, and enters what they have left open.
func (c *campaign) awaitReconciled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout+reconcileTimeout)
	defer cancel()
	for deadline := time.Now().Add(reconcileTimeout); ; wait(ctx, publishAgain) {
		books, err := c.reader().Read(ctx)
		if err != nil {
			return err
		}
		c.unfinished = verify.Unfinished(books)
		if len(c.unfinished) == 0 || time.Now().After(deadline) {
			return nil
		}
	}
}

func allPublished(b verify.Books) bool {
	return !slices.ContainsFunc(b.Events, func(e verify.Event) bool { return !e.Published })
}

// recoveries wants the service back soon after each healing.
func (c *campaign) recoveries() []verify.Violation {
	var found []verify.Violation
	for _, i := range c.injuries {
		if took := i.Recovered - i.Healed; took > backWithin {
			found = append(found, verify.Violation{Rule: verify.Recovery, Detail: fmt.Sprintf("%s at %.1fs: back after %.1fs", i.Name, i.Injected.Seconds(), took.Seconds())})
		}
	}
	return found
}

// leftOver compares what the replicas hold with what they held before; those that were restarted are compared with that, too.
func leftOver(baseline, after map[string]usage) []verify.Violation {
	var found []verify.Violation
	for name, before := range baseline {
		is := after[name] // nothing, if it did not answer
		if is.goroutines == 0 || is.goroutines > before.goroutines+slackGoroutines || is.connections > slackConnections {
			found = append(found, verify.Violation{Rule: verify.Resources, Detail: fmt.Sprintf("%s: %.0f goroutines (%.0f before), %.0f connections in use",
				name, is.goroutines, before.goroutines, is.connections)})
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
	if len(c.baseline) != len(c.target.Ops) {
		complain("only %d replicas told what they held before", len(c.baseline))
	}
	if len(c.injuries) == 0 {
		complain("nothing was hurt")
	}
	return found
}
