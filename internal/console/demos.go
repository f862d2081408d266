package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// lookInterval is how often a demonstration looks whether something has happened.
	lookInterval = 50 * time.Millisecond
	// soon bounds the wait for what takes milliseconds on a machine that is not busy.
	soon = 10 * time.Second
)

var demos = []demo{
	{"crash", "A crash in the middle of a payment",
		"A shopper pays with a card. When the provider has charged it, the replica that works on the payment is killed with SIGKILL, before it can store the outcome.",
		"nginx passes the request on to the other replica, which answers 409 until the lease of the dead one ends. Then a retry takes the payment over, asks the provider under the same key, and gets the same charge.",
		crashDemo},
	{"wiped", "Redis is wiped",
		"A shopper orders and pays. Then Redis loses everything, and the shopper sends the same payment again.",
		"The retry costs a round trip to PostgreSQL, which has the answer: the same bytes, marked as a replay, and no second charge.",
		wipedDemo},
	{"silent", "The provider charges without answering",
		"The provider charges the card and closes the connection. The outcome is unknown, and no event reports it.",
		"The shopper gets 503, which is not a failure. The retry finds the one charge and settles the payment.",
		silentDemo},
	{"flash", "The flash sale",
		fmt.Sprintf("%d shoppers order one of %d prints at the same time, and each of them clicks twice. Who gets one pays for it, with a double click.", flashShoppers, flashStock),
		fmt.Sprintf("%d orders, %d charges, no unit left. Everybody else gets 409 out_of_stock, and the same answer to the second click.", flashStock, flashStock),
		flashDemo},
}

// crashDemo: the worst moment, as in scripts/scenarios/06-crash.sh.
func crashDemo(a *act) {
	// Slower than the lease, so that the provider has not answered when it ends.
	p := a.order(fmt.Sprintf("tok_slow_%ds", int((a.cfg.Lease + 5*time.Second).Seconds())))
	if a.err != nil {
		return
	}
	first := make(chan string, 1)
	a.background.Go(func() { first <- statusText(a.send(p)) })
	worker := a.awaitCharge(p)
	a.say("The provider has charged the card. %s waits for its answer. Kill it.", worker)
	a.command("kill " + worker)
	a.say("nginx has passed the request on. The shopper gets %s.", <-first)
	paid := a.retry(p)
	if paid.Replay {
		a.say("The provider has told the outcome before the retry came. %s answers %d.", paid.ServedBy, paid.Status)
	} else {
		a.say("The lease of %s is over. %s takes the payment over and answers %d.", worker, paid.ServedBy, paid.Status)
	}
	a.command("start " + worker)
	again := a.retryAt(worker, p)
	a.say("%s runs again, and returns the same answer.", worker)
	a.compare(p, paid, again)
}

// wipedDemo: as in scripts/scenarios/08-redis-flushed.sh.
func wipedDemo(a *act) {
	p := a.order("tok_visa")
	var paid answer
	a.step(func() (err error) { paid, err = a.send(p); return err })
	a.say("%s answers %d. Empty Redis.", paid.ServedBy, paid.Status)
	a.command("flush redis")
	again := a.retry(p)
	a.say("The retry gets %d from %s, out of PostgreSQL.", again.Status, again.ServedBy)
	a.compare(p, paid, again)
}

// silentDemo: as in scripts/scenarios/15-no-answer.sh.
func silentDemo(a *act) {
	p := a.order("tok_charged_silent")
	var unknown answer
	a.step(func() (err error) { unknown, err = a.send(p); return err })
	a.say("The provider has hung up. The shopper gets %s.", statusText(unknown, nil))
	a.check("the first answer, which is no failure", unknown.Status, http.StatusServiceUnavailable)
	paid := a.retry(p)
	a.say("The retry asks for the same charge, and %s answers %d.", paid.ServedBy, paid.Status)
	a.compare(p, paid, a.retry(p))
}

// order places the order that a demonstration pays, and shows the payment's key in the key view.
func (a *act) order(token string) (p purchase) {
	a.step(func() error {
		order, err := a.patient.order(a.ctx, "tee-black")
		p = purchase{Order: order, Key: newKey("demo"), Token: token}
		return err
	})
	if a.err == nil {
		a.showKey(a.ctx, p.Key)
	}
	a.say("A shopper has ordered, and pays with %s under the key %s.", token, p.Key)
	return p
}

// send sends a payment once, through nginx, whatever happened before. The error says that there was
// no answer.
func (a *act) send(p purchase) (answer, error) {
	return a.pay(a.ctx, demonstration, "pay with "+p.Token, stack.Nginx, p)
}

// retry sends a payment through nginx until its answer is final.
func (a *act) retry(p purchase) answer { return a.retryAt(stack.Nginx, p) }

// retryAt sends a payment through a door until its answer is final, as Retry-After says.
func (a *act) retryAt(door string, p purchase) (final answer) {
	a.step(func() (err error) {
		for {
			final, err = a.pay(a.ctx, demonstration, "retry", door, p)
			if err == nil && final.isFinal() {
				return nil
			}
			if a.ctx.Err() == nil {
				a.say("The retry gets %s from %s.", statusText(final, err), cmp.Or(final.ServedBy, door)) // nginx does not say that it answered itself
			}
			seconds, _ := strconv.Atoi(final.RetryAfter)
			if err := wait.Pause(a.ctx, time.Duration(max(1, seconds))*time.Second); err != nil {
				return fmt.Errorf("retry the payment: %w", err)
			}
		}
	})
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
	a.step(func() error {
		return wait.For(a.ctx, soon, lookInterval, func(ctx context.Context) error {
			charges, err := tiers.Charges(ctx, a.cfg.Servers(ctx).Provider, p.Order)
			if err != nil || len(charges) == 0 {
				return fmt.Errorf("no charge yet: %w", err)
			}
			if worker = a.journal.workerOf(p.Key); worker == "" {
				return errors.New("no replica has said that it works on the payment")
			}
			return nil
		})
	})
	return worker
}

// compare is the verdict on a payment: the answers, the order, the charges, and the tiers.
func (a *act) compare(p purchase, paid, again answer) {
	status, charges := a.orderStatus(p.Order), a.charged(p.Order)
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

func (a *act) orderStatus(id string) string {
	var order struct{ Status string }
	a.read("/v1/orders/"+id, &order)
	return order.Status
}

// charged counts the charges of an order that took money.
func (a *act) charged(order string) (n int) {
	a.step(func() error {
		charges, err := tiers.Charges(a.ctx, a.cfg.Servers(a.ctx).Provider, order)
		for _, charge := range charges {
			if charge.Status == "succeeded" {
				n++
			}
		}
		return err
	})
	return n
}
