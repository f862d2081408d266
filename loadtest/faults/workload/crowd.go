package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/slowreader"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// stormPatience is when a client of a storm sends its request again: before a busy service has
	// answered.
	stormPatience = 300 * time.Millisecond
	// crowdPause is how long a client of a crowd pauses after an unknown outcome: what nginx says
	// in Retry-After.
	crowdPause = time.Second
	// slowPayment is a card for which the provider takes PaymentTakes: less than the replicas wait.
	slowPayment = "tok_slow_2s"
	// PaymentTakes is how long each payment by Pay waits for the provider.
	PaymentTakes = 2 * time.Second
	// payersCome is the time in which clients with slow payments arrive: their orders alone are no
	// overload.
	payersCome = 3 * time.Second
	// knocks is how many requests of strangers there are in a second. More would take the
	// processors that the replicas need on the same machine.
	knocks = 3000
)

// Crowd has size more clients order at nginx without a pause until ctx ends, and returns how many
// orders they sent.
func (c *Clients) Crowd(ctx context.Context, size int) (sent int) {
	return c.gather(ctx, size, 0, journal.Crowd, (*action).orderAndLeave)
}

// Flood is a Crowd of one account past nginx.
func (c *Clients) Flood(ctx context.Context, size int) (sent int) {
	return c.gather(ctx, size, 0, journal.Greedy, func(a *action, ctx context.Context, r Request) int {
		r.Via = endpoints[a.n%2]
		return a.orderAndLeave(ctx, r)
	})
}

// orderAndLeave sends an order once; only what succeeded is sent a second time, as a client does
// that lost the answer. After an unknown outcome it pauses: while no replica runs, there would be
// more keys than Finish can decide.
func (a *action) orderAndLeave(ctx context.Context, r Request) int {
	r.Leaves = true
	switch a.call(context.WithoutCancel(ctx), r).Outcome() {
	case journal.Succeeded:
		a.call(context.WithoutCancel(ctx), r)
		return 2
	case journal.Unknown:
		_ = wait.Pause(ctx, crowdPause)
	}
	return 1
}

// Storm has size more clients order, each of which repeats its request, without a pause and before
// it is answered, until the answer is final or ctx ends. What is undecided then is for Finish.
func (c *Clients) Storm(ctx context.Context, size int) (sent int) {
	return c.gather(ctx, size, 0, journal.RetryStorm, func(_ *action, ctx context.Context, r Request) int {
		r.Patience = stormPatience
		c.open.add(r)
		for number := 1; ; number++ {
			outcome := c.wire.Once(context.WithoutCancel(ctx), r, number).Outcome()
			c.open.answered(r, outcome)
			if outcome.Decided() || ctx.Err() != nil {
				return number
			}
		}
	})
}

// Pay has size more clients order at one replica, and pay with a card for which the provider takes
// PaymentTakes, until ctx ends. They retry as clients should. It returns how many requests there
// were.
func (c *Clients) Pay(ctx context.Context, size int) (sent int) {
	return c.gather(ctx, size, payersCome, journal.SlowPayer, func(a *action, ctx context.Context, r Request) int {
		ctx = context.WithoutCancel(ctx)
		r.Via = api1
		placed := a.call(ctx, r)
		if placed.Resource == "" {
			return 1
		}
		payment := a.payment(r.Account, placed.Resource, card(slowPayment))
		payment.Via, payment.Purpose = r.Via, r.Purpose
		a.call(ctx, payment)
		return 2
	})
}

// gather has clients come within some time and then place one order after the other until ctx ends.
// It adds up what they sent.
func (c *Clients) gather(ctx context.Context, size int, come time.Duration, purpose journal.Purpose,
	place func(*action, context.Context, Request) int,
) int {
	account := c.shop.Accounts[0]
	if purpose == journal.Greedy { // the one that shops less: its victims are most of the clients
		account = c.shop.Accounts[1]
	}
	return sideBySide(size, func(int) (sent int) {
		for _ = wait.Pause(ctx, rand.N(come+1)); ctx.Err() == nil; {
			a := c.passer()
			r := a.order(account, a.ampleItems()...)
			r.Via, r.Purpose = nginx, purpose
			sent += place(a, ctx, r)
		}
		return sent
	})
}

// Steady places orders at this rate a second until ctx ends, and pays each second one by card,
// however long answers take. It returns when each request has its last answer. Calls may overlap.
func (c *Clients) Steady(ctx context.Context, rate int) {
	working := context.WithoutCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	for wait.Pause(ctx, time.Second/time.Duration(rate)) == nil {
		a, account := c.passer(), c.shop.Accounts[0]
		group.Go(func() {
			placed := a.call(working, a.order(account, a.ampleItems()...))
			if placed.Resource != "" && a.n%2 == 0 {
				a.call(working, a.payment(account, placed.Resource, card("tok_visa")))
			}
		})
	}
}

// Knock has strangers, at most size at a time, send requests with unknown API keys to nginx and
// past it, a new key each time, until ctx ends. It returns how many were refused. What they send is
// not in the journal.
func (c *Clients) Knock(ctx context.Context, size int) (refused int) {
	var dialer net.Dialer
	if runtime.GOOS == "linux" { // another address of this machine: bounds for each address are then those of the strangers alone
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	pool := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: size}
	defer pool.CloseIdleConnections()
	client := &http.Client{Transport: pool, Timeout: answerTimeout}
	strangers := vegeta.NewAttacker(vegeta.Client(client), vegeta.MaxWorkers(uint64(size)))
	defer context.AfterFunc(ctx, func() { strangers.Stop() })()
	knock := func(t *vegeta.Target) error {
		t.Method, t.URL = http.MethodGet, c.wire.Endpoints[endpoints[rand.IntN(len(endpoints))]]+"/v1/orders"
		t.Header = http.Header{"Authorization": {"Bearer sk_live_" + uuid.NewString()}}
		return nil
	}
	for answer := range strangers.Attack(knock, vegeta.Rate{Freq: knocks, Per: time.Second}, 0, "") {
		if answer.Code == http.StatusUnauthorized || answer.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	return refused
}

// halves are what unfinished requests ask for: both of the bounds that nginx has.
var halves = []string{"/v1/orders", "/v1/orders/00000000-0000-0000-0000-000000000000/payments"}

// LeaveUnfinished sends size requests to nginx without an API key and without the end of their
// bodies, keeps their connections open until ctx ends, and returns how many it sent.
func (c *Clients) LeaveUnfinished(ctx context.Context, size int) (sent int) {
	address := strings.TrimPrefix(c.wire.Endpoints[nginx], "http://")
	return sideBySide(size, func(n int) (sent int) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return 0
		}
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		const half = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{"
		_, _ = fmt.Fprintf(conn, half, halves[n%len(halves)])
		_, _ = io.Copy(io.Discard, conn) // until nginx or ctx ends it
		return 1
	})
}

// ReadNothing asks nginx for size answers from two other addresses, keeps their connections open
// without reading until ctx ends, and returns how many it asked for. Most are for the largest page,
// which needs no API key. One in twenty is for a list, of one account: it leaves that account some
// of its places.
func (c *Clients) ReadNothing(ctx context.Context, size int) (asked int) {
	address := strings.TrimPrefix(c.wire.Endpoints[nginx], "http://")
	return sideBySide(size, func(n int) int {
		path, apiKey := "/docs/swagger-ui-bundle.js", ""
		if n%20 == 0 {
			path, apiKey = "/v1/orders?limit=100", c.shop.Accounts[1]
		}
		conn, err := slowreader.Ask(ctx, []string{"127.0.0.2", "127.0.0.3"}[n%2], address, path, apiKey)
		if err != nil {
			return 0
		}
		defer func() { _ = conn.Close() }()
		<-ctx.Done()
		return 1
	})
}
