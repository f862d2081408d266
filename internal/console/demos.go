package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// demoTimeout bounds a demonstration. The longest takes as long as its slow card: 20 seconds.
	demoTimeout = 60 * time.Second
	// The flash sale: many more shoppers than units.
	flashStock    = 5
	flashShoppers = 30
	// pollInterval is how often a demonstration looks whether something has happened.
	pollInterval = 50 * time.Millisecond
	// soon bounds the wait for what takes milliseconds on a machine that is not busy.
	soon = 10 * time.Second
)

// A demo shows one promise: it says what is about to happen, does it, and compares the books.
type demo struct {
	Name, Title string
	Announce    string // what is about to happen
	Expect      string // what one should see
	run         func(*act)
}

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
	p := a.order("tok_slow_20s") // the lease of production ends before that
	var first answer
	var sent sync.WaitGroup
	sent.Go(func() { first, _ = a.send(p) })
	worker := a.awaitCharge(p)
	a.say("The provider has charged the card. %s waits for its answer. Kill it.", worker)
	a.command("kill " + worker)
	sent.Wait()
	a.say("nginx has passed the request on. The shopper gets %s.", first)
	paid := a.retry(stack.Nginx, p)
	if paid.Replay {
		a.say("The provider has told the outcome before the retry came. %s answers %s.", paid.ServedBy, paid)
	} else {
		a.say("The lease of %s is over. %s takes the payment over and answers %s.", worker, paid.ServedBy, paid)
	}
	a.command("start " + worker)
	again := a.retry(worker, p)
	a.say("%s runs again, and returns the same answer.", worker)
	a.compare(p, paid, again)
}

// wipedDemo: as in scripts/scenarios/08-redis-flushed.sh.
func wipedDemo(a *act) {
	p := a.order("tok_visa")
	paid, err := a.send(p)
	a.must(err)
	a.say("%s answers %s. Empty Redis.", paid.ServedBy, paid)
	a.command("flush redis")
	again := a.retry(stack.Nginx, p)
	a.say("The retry gets %s from %s, out of PostgreSQL.", again, again.ServedBy)
	a.compare(p, paid, again)
}

// silentDemo: as in scripts/scenarios/15-no-answer.sh.
func silentDemo(a *act) {
	p := a.order("tok_charged_silent")
	unknown, err := a.send(p)
	a.must(err)
	a.say("The provider has hung up. The shopper gets %s.", unknown)
	a.check("the first answer, which is no failure", unknown.Status, http.StatusServiceUnavailable)
	paid := a.retry(stack.Nginx, p)
	a.say("The retry asks for the same charge, and %s answers %s.", paid.ServedBy, paid)
	a.compare(p, paid, a.retry(stack.Nginx, p))
}

// flashDemo: more shoppers than units, all at once, all with a double click.
func flashDemo(a *act) {
	sku := newKey("flash")
	cart, err := a.patient.open(a.ctx, sku, "Limited print", 9900, flashStock)
	a.must(err)
	a.say("%d prints are for sale. %d shoppers click twice.", flashStock, flashShoppers)
	var answers [flashShoppers][2]answer
	var shopping sync.WaitGroup
	for i := range answers {
		key := newKey("flash")
		for click := range 2 {
			shopping.Go(func() {
				got, err := a.patient.send(a.ctx, stack.Nginx, http.MethodPost, "/v1/orders", key, "", cart)
				a.must(err)
				answers[i][click] = got
			})
		}
	}
	shopping.Wait()
	var orders, paid, charges, soldOut, differ int
	for _, clicks := range answers {
		first, second := clicks[0], clicks[1]
		// Two refusals differ in the IDs of the requests.
		if first.String() != second.String() || (first.Code == "" && !bytes.Equal(first.Body, second.Body)) {
			differ++
		}
		switch {
		case first.Code == "out_of_stock":
			soldOut++
		case first.Status == http.StatusCreated:
			orders++
			p := purchase{first.ID, newKey("demo"), "tok_visa"}
			for range 2 {
				shopping.Go(func() { _, _ = a.pay(a.ctx, demonstration, "double click", stack.Nginx, p) })
			}
			shopping.Wait()
			a.retry(stack.Nginx, p)
			status, charged := a.books(p.Order)
			if charges += charged; status == "paid" {
				paid++
			}
		}
	}
	a.say("%d got one and have paid, with a double click each. %d got %q.", orders, soldOut, "out of stock")
	var product struct{ Stock int }
	a.read("/v1/products/"+sku, &product)
	a.check("orders that shoppers were told of", orders, flashStock)
	a.check("of them paid", paid, flashStock)
	a.check("charges at the provider", charges, flashStock)
	a.check("units left", product.Stock, 0)
	a.check("shoppers told out of stock", soldOut, flashShoppers-flashStock)
	a.check("second clicks with another answer", differ, 0)
}

// story is what the demonstration that runs, or ran last, has shown so far.
type story struct {
	demo
	Running bool
	Lines   []storyLine
	Checks  []check

	Took    time.Duration
	Failure error // why it could not be shown

	began time.Time
}

// storyLine is something that happened.
type storyLine struct {
	At   string // seconds since the beginning
	Text string
}

// check compares the books with what they should say.
type check struct {
	What, Got, Want string
	OK              bool
}

// Passed reports whether every check holds.
func (s story) Passed() bool {
	return s.Failure == nil && !slices.ContainsFunc(s.Checks, func(c check) bool { return !c.OK })
}

// demonstrate starts a demonstration.
func (s *Server) demonstrate(_ context.Context, form url.Values) (string, error) {
	i := slices.IndexFunc(demos, func(d demo) bool { return d.Name == form.Get("demo") })
	if i < 0 {
		return "", errors.New("there is no such demonstration")
	}
	if err := s.begin(demos[i]); err != nil {
		return "", err
	}
	s.background.Go(func() { s.perform(demos[i]) })
	return "It begins: " + demos[i].Title, nil
}

// begin fails if another demonstration runs. The attempts of the one before are forgotten.
func (s *Server) begin(d demo) (err error) {
	s.change(func(now *state) {
		if now.Story.Running {
			err = fmt.Errorf("%q is still running", now.Story.Title)
			return
		}
		now.Story = story{demo: d, began: time.Now(), Running: true}
		now.Attempts = slices.DeleteFunc(now.Attempts, func(a *attempt) bool { return a.By == demonstration })
	})
	return err
}

// perform runs a demonstration on a deployment that is well, and leaves it well.
func (s *Server) perform(d demo) {
	a := &act{Server: s}
	a.ctx, a.fail = context.WithCancelCause(s.stopping)
	defer time.AfterFunc(demoTimeout, func() { a.fail(errors.New("it takes too long")) }).Stop()
	_, err := s.mend(a.ctx)
	a.must(err)
	d.run(a)
	failure := context.Cause(a.ctx)
	a.fail(nil)
	_, err = s.mend(context.WithoutCancel(a.ctx))
	s.end(cmp.Or(failure, err))
}

func (s *Server) end(failure error) {
	s.change(func(now *state) {
		now.Story.Running, now.Story.Failure, now.Story.Took = false, failure, time.Since(now.Story.began)
	})
}

// act is a demonstration that is under way. Its first error ends its context, and the steps after
// it do nothing.
type act struct {
	*Server
	ctx  context.Context
	fail context.CancelCauseFunc
}

// must ends the demonstration, if there is an error.
func (a *act) must(err error) {
	if err != nil {
		a.fail(err)
	}
}

// say adds a line to the story, unless it was said just now.
func (a *act) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.change(func(now *state) {
		is := &now.Story
		if last := len(is.Lines) - 1; a.ctx.Err() == nil && (last < 0 || is.Lines[last].Text != text) {
			is.Lines = append(is.Lines, storyLine{fmt.Sprintf("%.1f s", time.Since(is.began).Seconds()), text})
		}
	})
}

// check adds a line to the verdict.
func (a *act) check(what string, got, want any) {
	a.change(func(now *state) {
		if a.ctx.Err() == nil {
			now.Story.Checks = append(now.Story.Checks, check{what, fmt.Sprint(got), fmt.Sprint(want), got == want})
		}
	})
}

// command does one command of the switchboard.
func (a *act) command(command string) {
	if a.ctx.Err() == nil {
		_, err := a.Server.command(a.ctx, command)
		a.must(err)
	}
}

// order places the order that a demonstration pays, and shows the payment's key in the key view.
func (a *act) order(token string) purchase {
	p, err := a.patient.order(a.ctx, newKey("demo"), token)
	a.must(err)
	a.showKey(a.ctx, p.Key)
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
		final, _ = a.pay(a.ctx, demonstration, "retry", door, p)
		if final.isFinal() {
			break
		}
		from := cmp.Or(final.ServedBy, door) // nginx does not say that it answered itself
		a.say("The retry gets %s from %s.", final, from)
		seconds, _ := strconv.Atoi(final.RetryAfter)
		_ = wait.Pause(a.ctx, time.Duration(max(1, seconds))*time.Second)
	}
	return final
}

// awaitCharge waits until the provider has charged, and returns the replica that asked for it.
func (a *act) awaitCharge(p purchase) (worker string) {
	a.must(wait.For(a.ctx, soon, pollInterval, func(context.Context) error {
		a.change(func(now *state) { worker = now.firstWorker(p.Key) })
		if _, charges := a.books(p.Order); charges == 0 || worker == "" {
			return errors.New("there is no charge yet, or no replica has said that it works on the payment")
		}
		return nil
	}))
	return worker
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
	for _, finding := range tiers.Read(a.ctx, a.where(), p.Key).Findings() {
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
	charges, err := tiers.Charges(a.ctx, a.where(), order)
	a.must(err)
	for _, charge := range charges {
		if charge.Status == "succeeded" {
			charged++
		}
	}
	return has.Status, charged
}

// read gets a resource of the shop.
func (a *act) read(path string, resource any) {
	got, err := a.patient.call(a.ctx, http.MethodGet, path, "", "")
	a.must(cmp.Or(err, json.Unmarshal(got.Body, resource)))
}
