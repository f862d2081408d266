package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// pollInterval is how often a demonstration looks whether something has happened.
	pollInterval = 50 * time.Millisecond
	// soon bounds the wait for what takes milliseconds on a machine that is not busy.
	soon = 10 * time.Second
)

// order places the order that a demonstration pays, and shows the payment's key in the key view.
func (a *act) order(token string) purchase {
	p, err := a.patient.order(a.ctx, newKey("demo"), token)
	a.fail(err)
	if err == nil {
		a.showKey(a.ctx, p.Key)
	}
	a.say("A shopper has ordered, and pays with %s under the key %s.", token, p.Key)
	return p
}

// send sends a payment once, through nginx. The error says that there was no answer.
func (a *act) send(p purchase) (answer, error) {
	return a.pay(a.ctx, demonstration, "pay with "+p.Token, stack.Nginx, p)
}

// retry sends a payment through a door until its answer is final, as Retry-After says.
func (a *act) retry(door string, p purchase) (final answer) {
	for a.ctx.Err() == nil {
		var err error
		if final, err = a.pay(a.ctx, demonstration, "retry", door, p); err == nil && final.isFinal() {
			break
		}
		from := cmp.Or(final.ServedBy, door) // nginx does not say that it answered itself
		a.say("The retry gets %s from %s.", statusText(final, err), from)
		seconds, _ := strconv.Atoi(final.RetryAfter)
		_ = wait.Pause(a.ctx, time.Duration(max(1, seconds))*time.Second)
	}
	return final
}

func statusText(a answer, err error) string {
	if err != nil {
		return "no answer"
	}
	return fmt.Sprintf("%d %s", a.Status, a.Code)
}

// awaitCharge waits until the provider has charged, and returns the replica that asked for it.
func (a *act) awaitCharge(p purchase) (worker string) {
	a.fail(wait.For(a.ctx, soon, pollInterval, func(ctx context.Context) error {
		charges, err := tiers.Charges(ctx, a.cfg.Servers(ctx).Provider, p.Order)
		if err != nil || len(charges) == 0 {
			return fmt.Errorf("no charge yet: %w", err)
		}
		a.change(func(now *state) { worker = now.workerOf(p.Key) })
		if worker == "" {
			return errors.New("no replica has said that it works on the payment")
		}
		return nil
	}))
	return worker
}

// clickTwice has each shopper order, by two requests with one key.
func (a *act) clickTwice(cart any) (answers [flashShoppers][2]answer) {
	var clicks sync.WaitGroup
	for i := range answers {
		key := newKey("flash")
		for j := range answers[i] {
			clicks.Go(func() {
				var err error
				answers[i][j], err = a.patient.send(a.ctx, stack.Nginx, http.MethodPost, "/v1/orders", key, "", cart)
				a.fail(err)
			})
		}
	}
	clicks.Wait()
	return answers
}

// payTwice pays by a double click, and retries until there is a final answer.
func (a *act) payTwice(p purchase) {
	var clicks sync.WaitGroup
	for range 2 {
		clicks.Go(func() { _, _ = a.pay(a.ctx, demonstration, "double click", stack.Nginx, p) })
	}
	clicks.Wait()
	a.retry(stack.Nginx, p)
}

// same reports whether two answers are one. The problems of a refusal differ in the IDs of the
// requests.
func (a answer) same(other answer) bool {
	sameProblem := a.Status >= http.StatusBadRequest && a.Code == other.Code
	return a.Status == other.Status && (sameProblem || bytes.Equal(a.Body, other.Body))
}

// compare is the verdict on a payment: the answers, the order, the charges, and the tiers.
func (a *act) compare(p purchase, paid, again answer) {
	status, charges := a.books(p.Order)
	a.check("status of the payment", paid.Status, http.StatusCreated)
	a.check("another retry is a replay", again.Replay, true)
	a.check("it has the same body, byte for byte", bytes.Equal(paid.Body, again.Body), true)
	a.check("the order is", status, "paid")
	a.check("charges at the provider", charges, 1)
	differing := 0
	for _, finding := range tiers.Read(a.ctx, a.cfg.Servers(a.ctx), p.Key).Findings() {
		if finding.Verdict == tiers.Differ {
			differing++
			a.say("%s", finding.Text)
		}
	}
	a.check("differences between the tiers", differing, 0)
}

// books are the status of an order, and how many of its charges took money.
func (a *act) books(order string) (status string, charged int) {
	var has struct{ Status string }
	a.read("/v1/orders/"+order, &has)
	charges, err := tiers.Charges(a.ctx, a.cfg.Servers(a.ctx).Provider, order)
	a.fail(err)
	for _, charge := range charges {
		if charge.Status == "succeeded" {
			charged++
		}
	}
	return has.Status, charged
}
