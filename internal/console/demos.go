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

// pay sends a payment of a demonstration once.
func (s *Server) pay(ctx context.Context, what, door string, p purchase) (answer, error) {
	return s.shop.pay(labelled(ctx, demonstration, what), door, p)
}

// retry sends a payment through nginx until its answer is final, as Retry-After says.
func (s *Server) retry(ctx context.Context, p purchase, on *stage) (answer, error) {
	for {
		a, err := s.pay(ctx, "retry", stack.Nginx, p)
		if err == nil && a.isFinal() {
			return a, nil
		}
		if ctx.Err() == nil {
			on.say("The retry gets %s from %s.", statusText(a, err), cmp.Or(a.ServedBy, stack.Nginx)) // which adds no header
		}
		seconds, _ := strconv.Atoi(a.RetryAfter)
		if err := wait.Pause(ctx, time.Duration(max(1, seconds))*time.Second); err != nil {
			return answer{}, fmt.Errorf("retry the payment: %w", err)
		}
	}
}

func statusText(a answer, err error) string {
	if err != nil {
		return "no answer"
	}
	return fmt.Sprintf("%d %s", a.Status, a.Code)
}

// crashDemo: the worst moment, as in scripts/scenarios/06-crash.sh.
func crashDemo(ctx context.Context, s *Server, on *stage) error {
	// Slower than the lease, so that the provider has not answered when it ends.
	p, err := s.begin(ctx, on, fmt.Sprintf("tok_slow_%ds", int((s.cfg.Lease+5*time.Second).Seconds())))
	if err != nil {
		return err
	}
	first := make(chan string, 1)
	s.background.Go(func() {
		a, err := s.pay(ctx, "pay with "+p.Token, stack.Nginx, p)
		first <- statusText(a, err)
	})
	worker, err := s.awaitCharge(ctx, p)
	if err != nil {
		return err
	}
	on.say("The provider has charged the card. %s waits for its answer. Kill it.", worker)
	if _, err := s.command(ctx, "kill "+worker); err != nil {
		return err
	}
	on.say("nginx has passed the request on. The shopper gets %s.", <-first)
	paid, err := s.retry(ctx, p, on)
	if err != nil {
		return err
	}
	if paid.Replay {
		on.say("The provider has told the outcome before the retry came. %s answers %d.", paid.ServedBy, paid.Status)
	} else {
		on.say("The lease of %s is over. %s takes the payment over and answers %d.", worker, paid.ServedBy, paid.Status)
	}
	if _, err := s.command(ctx, "start "+worker); err != nil {
		return err
	}
	again, err := s.pay(ctx, "retry", worker, p)
	if err != nil {
		return fmt.Errorf("retry at %s: %w", worker, err)
	}
	on.say("%s runs again, and returns the same answer.", worker)
	return s.compare(ctx, on, p, paid, again)
}

// wipedDemo: as in scripts/scenarios/08-redis-flushed.sh.
func wipedDemo(ctx context.Context, s *Server, on *stage) error {
	p, err := s.begin(ctx, on, "tok_visa")
	if err != nil {
		return err
	}
	paid, err := s.pay(ctx, "pay with "+p.Token, stack.Nginx, p)
	if err != nil {
		return fmt.Errorf("pay: %w", err)
	}
	on.say("%s answers %d. Empty Redis.", paid.ServedBy, paid.Status)
	if _, err := s.command(ctx, "flush redis"); err != nil {
		return err
	}
	again, err := s.retry(ctx, p, on)
	if err != nil {
		return err
	}
	on.say("The retry gets %d from %s, out of PostgreSQL.", again.Status, again.ServedBy)
	return s.compare(ctx, on, p, paid, again)
}

// silentDemo: as in scripts/scenarios/15-no-answer.sh.
func silentDemo(ctx context.Context, s *Server, on *stage) error {
	p, err := s.begin(ctx, on, "tok_charged_silent")
	if err != nil {
		return err
	}
	unknown, err := s.pay(ctx, "pay with "+p.Token, stack.Nginx, p)
	on.say("The provider has hung up. The shopper gets %s.", statusText(unknown, err))
	on.check("the first answer, which is no failure", unknown.Status, http.StatusServiceUnavailable)
	paid, err := s.retry(ctx, p, on)
	if err != nil {
		return err
	}
	on.say("The retry asks for the same charge, and %s answers %d.", paid.ServedBy, paid.Status)
	again, err := s.retry(ctx, p, on)
	if err != nil {
		return err
	}
	return s.compare(ctx, on, p, paid, again)
}

// begin places the order that a demonstration pays, and shows the payment's key in the key view.
func (s *Server) begin(ctx context.Context, on *stage, token string) (purchase, error) {
	order, err := s.patient.order(ctx, "tee-black")
	if err != nil {
		return purchase{}, err
	}
	p := purchase{Order: order, Key: newKey("demo"), Token: token}
	s.showKey(ctx, p.Key)
	on.say("A shopper has ordered, and pays with %s under the key %s.", token, p.Key)
	return p, nil
}

// awaitCharge waits until the provider has charged, and returns the replica that asked for it.
func (s *Server) awaitCharge(ctx context.Context, p purchase) (worker string, err error) {
	err = wait.For(ctx, soon, lookInterval, func(ctx context.Context) error {
		charges, err := tiers.Charges(ctx, s.cfg.Servers(ctx).Provider, p.Order)
		if err != nil || len(charges) == 0 {
			return fmt.Errorf("no charge yet: %w", err)
		}
		if worker = s.journal.workerOf(p.Key); worker == "" {
			return errors.New("no replica has said that it works on the payment")
		}
		return nil
	})
	return worker, err
}

// compare is the verdict on a payment: the answers, the order, the charges, and the tiers.
func (s *Server) compare(ctx context.Context, on *stage, p purchase, paid, again answer) error {
	on.check("status of the payment", paid.Status, http.StatusCreated)
	on.check("another retry is a replay", again.Replay, true)
	on.check("it has the same body, byte for byte", bytes.Equal(paid.Body, again.Body), true)
	var order struct{ Status string }
	if err := s.patient.call(ctx, http.MethodGet, "/v1/orders/"+p.Order, "", nil, &order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	on.check("the order is", order.Status, "paid")
	charges, err := s.charged(ctx, p.Order)
	if err != nil {
		return err
	}
	on.check("charges at the provider", charges, 1)
	differing := 0
	for _, finding := range tiers.Read(ctx, s.cfg.Servers(ctx), p.Key).Findings() {
		if finding.Verdict == tiers.Differ {
			differing++
			on.say("%s", finding.Text)
		}
	}
	on.check("differences between the tiers", differing, 0)
	return nil
}

// charged counts the charges of an order that took money.
func (s *Server) charged(ctx context.Context, order string) (n int, err error) {
	charges, err := tiers.Charges(ctx, s.cfg.Servers(ctx).Provider, order)
	for _, charge := range charges {
		if charge.Status == "succeeded" {
			n++
		}
	}
	return n, err
}
