package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// stormPatience is when a client of a storm sends its request again: before a busy service has
// answered.
const stormPatience = 300 * time.Millisecond

// crowdPause is how long a client of a crowd pauses after an unknown outcome: what nginx says in
// Retry-After.
const crowdPause = time.Second

const (
	// slowPayment is a card for which the provider takes PaymentTakes: less than the replicas wait.
	slowPayment = "tok_slow_2s"
	// PaymentTakes is how long each payment by Pay waits for the provider.
	PaymentTakes = 2 * time.Second
	// payersCome is the time in which clients with slow payments arrive: their orders alone are no
	// overload.
	payersCome = 3 * time.Second
)

// Crowd has size more clients order at nginx without a pause until ctx ends, and returns how many
// orders they sent. They leave at once; only what succeeded they send a second time, as a client
// does that lost the answer. After an unknown outcome they pause: while no replica runs, they would
// leave more keys than Finish can decide. The name keeps the keys of several crowds apart.
func (c *Clients) Crowd(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.Crowd, func(ctx context.Context, _ *action, r Request) int {
		switch c.abandon(ctx, r) {
		case journal.Succeeded:
			c.abandon(ctx, r)
			return 2
		case journal.Unknown:
			_ = wait.Pause(ctx, crowdPause)
		}
		return 1
	})
}

// Storm has size more clients order, each of which repeats its request, without a pause and before
// it is answered, until the answer is final or ctx ends. What is undecided then is for Finish.
func (c *Clients) Storm(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.RetryStorm, func(_ context.Context, _ *action, r Request) int {
		r.Patience = stormPatience
		c.open.add(r, false)
		for number := 1; ; number++ {
			a := c.answered(r, c.wire.Once(context.WithoutCancel(ctx), r, number))
			if a.Outcome().Decided() || ctx.Err() != nil {
				return number
			}
		}
	})
}

// Pay has size more clients order at one replica, and pay with a card for which the provider takes
// PaymentTakes, until ctx ends. They retry as clients should. It returns how many requests there
// were.
func (c *Clients) Pay(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.SlowPayer, func(ctx context.Context, a *action, r Request) int {
		if a.n == 0 {
			_ = wait.Pause(ctx, time.Duration(a.random.Int64N(int64(payersCome))))
		}
		r.Via = api1
		placed := a.call(ctx, r, a.fork())
		if placed.Resource == "" {
			return 1
		}
		payment := a.payment(r.Account, placed.Resource, card(slowPayment))
		payment.Key, payment.Via, payment.Purpose = r.Key+"-payment", r.Via, r.Purpose
		a.call(ctx, payment, a.fork())
		return 2
	})
}

// Flood has size more clients of one account order past nginx without a pause until ctx ends, and
// returns how many orders they sent. They leave at once.
func (c *Clients) Flood(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.Greedy, func(ctx context.Context, a *action, r Request) int {
		r.Via = []string{api1, api2}[a.n%2]
		if c.abandon(ctx, r) == journal.Unknown {
			_ = wait.Pause(ctx, crowdPause)
		}
		return 1
	})
}

// gather has each of the clients place one order after the other, and adds up what they sent.
func (c *Clients) gather(ctx context.Context, name string, size int, purpose journal.Purpose,
	place func(context.Context, *action, Request) int,
) int {
	account := c.shop.Accounts[0]
	if purpose == journal.Greedy { // the one that shops less: its victims are most of the clients
		account = c.shop.Accounts[1]
	}
	return sideBySide(size, func(id int) (sent int) {
		for n := 0; ctx.Err() == nil; n++ {
			a := &action{c, -1, n, rand.New(rand.NewPCG(c.seed, uint64(id)<<32|uint64(n)))}
			r := a.order(account, a.ampleItems())
			r.Key = fmt.Sprintf("faults-crowd-%s-%d-%d", name, id, n)
			r.Via, r.Purpose = nginx, purpose
			sent += place(context.WithoutCancel(ctx), a, r)
		}
		return sent
	})
}

// steadyClient is the number of the client that Steady's requests come from.
const steadyClient = 1_000_000

// Steady places orders at this rate a second until ctx ends, and pays each second one by card,
// however long answers take. It returns when each request has its last answer. Calls may overlap.
func (c *Clients) Steady(ctx context.Context, rate int) {
	working := context.WithoutCancel(ctx)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n := c.steady.Add(1)
		group.Go(func() {
			a := c.action(steadyClient, int(n))
			account := a.shop.Accounts[0]
			placed := a.call(working, a.order(account, a.ampleItems()), a.fork())
			if placed.Resource != "" && n%2 == 0 {
				a.call(working, a.payment(account, placed.Resource, card("tok_visa")), a.fork())
			}
		})
	}
}

// knocks is the pause of a stranger after an answer. Without one the strangers' own work would take
// the processors that the replicas need on the same machine.
const knocks = 20 * time.Millisecond

// Knock has size strangers send requests with unknown API keys to nginx and past it, a new key each
// time, until ctx ends. It returns how many were refused. What they send is not in the journal.
func (c *Clients) Knock(ctx context.Context, _ string, size int) (refused int) {
	var dialer net.Dialer
	if runtime.GOOS == "linux" { // another address of this machine: bounds for each address are then those of the strangers alone
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	pool := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: size}
	defer pool.CloseIdleConnections()
	client := &http.Client{Transport: pool, Timeout: answerTimeout}
	return sideBySide(size, func(n int) (refused int) {
		for ctx.Err() == nil {
			if knock(ctx, client, c.wire.Endpoints[endpoints[n%len(endpoints)]]) {
				refused++
			}
			_ = wait.Pause(ctx, knocks)
		}
		return refused
	})
}

// knock sends one request of a stranger, and reports whether it was refused.
func knock(ctx context.Context, client *http.Client, endpoint string) (refused bool) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/v1/orders", nil)
	if err != nil {
		panic(err) // our own endpoints
	}
	q.Header.Set("Authorization", "Bearer sk_live_"+uuid.NewString())
	answer, err := client.Do(q)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusTooManyRequests
}

// halves are what unfinished requests ask for: both of the bounds that nginx has.
var halves = []string{"/v1/orders", "/v1/orders/00000000-0000-0000-0000-000000000000/payments"}

// LeaveUnfinished sends size requests to nginx without an API key and without the end of their
// bodies, keeps their connections open until ctx ends, and returns how many it sent.
func (c *Clients) LeaveUnfinished(ctx context.Context, _ string, size int) (sent int) {
	at, err := url.Parse(c.wire.Endpoints[nginx])
	if err != nil {
		panic(err) // our own endpoint
	}
	return sideBySide(size, func(n int) (sent int) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
		if err != nil {
			return 0
		}
		defer func() { _ = conn.Close() }()
		half := "POST " + halves[n%len(halves)] + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{"
		if _, err := fmt.Fprint(conn, half); err != nil {
			return 0
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_, _ = io.Copy(io.Discard, conn) // until nginx or ctx ends it
		return 1
	})
}
