package console

import (
	"fmt"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// The flash sale: many more shoppers than units.
const (
	flashStock    = 5
	flashShoppers = 30
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
	first := make(chan string, 1)
	a.background.Go(func() { first <- statusText(a.send(p)) })
	worker := a.awaitCharge(p)
	a.say("The provider has charged the card. %s waits for its answer. Kill it.", worker)
	a.command("kill " + worker)
	a.say("nginx has passed the request on. The shopper gets %s.", <-first)
	paid := a.retry(stack.Nginx, p)
	if paid.Replay {
		a.say("The provider has told the outcome before the retry came. %s answers %d.", paid.ServedBy, paid.Status)
	} else {
		a.say("The lease of %s is over. %s takes the payment over and answers %d.", worker, paid.ServedBy, paid.Status)
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
	a.fail(err)
	a.say("%s answers %d. Empty Redis.", paid.ServedBy, paid.Status)
	a.command("flush redis")
	again := a.retry(stack.Nginx, p)
	a.say("The retry gets %d from %s, out of PostgreSQL.", again.Status, again.ServedBy)
	a.compare(p, paid, again)
}

// silentDemo: as in scripts/scenarios/15-no-answer.sh.
func silentDemo(a *act) {
	p := a.order("tok_charged_silent")
	unknown, err := a.send(p)
	a.fail(err)
	a.say("The provider has hung up. The shopper gets %s.", statusText(unknown, nil))
	a.check("the first answer, which is no failure", unknown.Status, http.StatusServiceUnavailable)
	paid := a.retry(stack.Nginx, p)
	a.say("The retry asks for the same charge, and %s answers %d.", paid.ServedBy, paid.Status)
	a.compare(p, paid, a.retry(stack.Nginx, p))
}

// flashDemo: more shoppers than units, all at once, all with a double click.
func flashDemo(a *act) {
	sku := newKey("flash")
	a.fail(a.patient.product(a.ctx, sku, "Limited print", 9900, flashStock))
	customer, err := a.patient.customer(a.ctx)
	a.fail(err)
	a.say("%d prints are for sale. %d shoppers click twice.", flashStock, flashShoppers)
	var orders []string
	soldOut, differ := 0, 0
	for _, clicks := range a.clickTwice(cart(customer, sku, 1)) {
		if one := clicks[0]; one.Status == http.StatusCreated {
			orders = append(orders, one.ID)
		} else if one.Code == "out_of_stock" {
			soldOut++
		}
		if !clicks[0].same(clicks[1]) {
			differ++
		}
	}
	a.say("%d got one, %d got %q.", len(orders), soldOut, "out of stock")
	paid, charges := 0, 0
	for _, id := range orders {
		a.payTwice(purchase{id, newKey("demo"), "tok_visa"})
		status, n := a.books(id)
		if charges += n; status == "paid" {
			paid++
		}
	}
	a.say("The winners have paid, with a double click each.")
	var product struct{ Stock int }
	a.read("/v1/products/"+sku, &product)
	a.check("orders that shoppers were told of", len(orders), flashStock)
	a.check("of them paid", paid, flashStock)
	a.check("charges at the provider", charges, flashStock)
	a.check("units left", product.Stock, 0)
	a.check("shoppers told out of stock", soldOut, flashShoppers-flashStock)
	a.check("second clicks with another answer", differ, 0)
}
