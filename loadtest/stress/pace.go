package main

import (
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

// kind is a row of the report: requests of one purpose on one road.
type kind string

// Singles go through nginx. A pair goes to the two replicas at the same
// moment, past nginx: it is the race that a lock must win.
const (
	newOrder   kind = "new order"
	cardPay    kind = "card payment"
	walletPay  kind = "wallet payment"
	pairOrder  kind = "raced order"
	pairCard   kind = "raced card payment"
	pairWallet kind = "raced wallet payment"
	duplicate  kind = "its duplicate"
	replay     kind = "replay"
	mismatch   kind = "reused key"
)

// kinds are in the order of the report, in words for the page.
var kinds = []row{
	{Kind: newOrder, About: "sent to nginx"},
	{Kind: cardPay, About: "asks the provider"},
	{Kind: walletPay, About: "is taken from the customer's balance"},
	{Kind: pairOrder, About: "sent to both replicas at the same moment"},
	{Kind: pairCard, About: "the same with a card payment"},
	{Kind: pairWallet, About: "the same with a payment from the wallet"},
	{Kind: duplicate, About: "the second of such a pair"},
	{Kind: replay, About: "an answered request, sent again"},
	{Kind: mismatch, About: "another request, sent with a used key"},
}

// cycle is the mix, over and over. There are more orders than payments, so
// that there is always something to pay.
var cycle = [...]kind{
	newOrder, pairOrder, duplicate, cardPay, replay,
	newOrder, walletPay, newOrder, pairCard, duplicate,
	replay, newOrder, mismatch, cardPay, pairOrder,
	duplicate, pairWallet, duplicate, mismatch, replay,
}

func slot(n uint64) kind { return cycle[n%uint64(len(cycle))] }

// pacer sends at a steady rate, except that a duplicate is sent at the very
// moment of the request before it. It implements vegeta.Pacer.
type pacer struct {
	rate     int // per second
	requests uint64
}

// due is when request n is to be sent, measured from the start.
func (p pacer) due(n uint64) time.Duration {
	if slot(n) == duplicate {
		n--
	}
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}

// Pace returns how long to wait before request n.
func (p pacer) Pace(elapsed time.Duration, n uint64) (wait time.Duration, stop bool) {
	return max(0, p.due(n)-elapsed), n >= p.requests
}

// Rate is the mean rate; vegeta asks for it to draw.
func (p pacer) Rate(time.Duration) float64 { return float64(p.rate) }

// keptShare of the asked rate must have been driven; below it, the latencies
// are those of another, gentler test.
const keptShare = 0.95

// punctual says whether the load was what was asked for. An attacker that is
// late measures the system at a lower rate, which flatters it.
type punctual struct {
	Asked    float64 `json:"asked_per_second"`
	Achieved float64 `json:"achieved_per_second"`
	P99      float64 `json:"late_p99_ms"` // how late requests were sent
	Max      float64 `json:"late_max_ms"`
	Kept     bool    `json:"kept"`
}

// punctuality judges when the requests were sent, by their numbers, measured from the start.
func (p pacer) punctuality(sent map[uint64]time.Duration) punctual {
	s := punctual{Asked: float64(p.rate)}
	if len(sent) == 0 {
		return s
	}
	var late []time.Duration
	for n, at := range sent {
		late = append(late, at-sent[0]-p.due(n))
	}
	slices.Sort(late)
	s.P99, s.Max = report.Milliseconds(report.Percentile(late, 99)), report.Milliseconds(late[len(late)-1])
	s.Achieved = s.Asked
	last := uint64(len(sent)) - 1
	// The plan's own span, and what it took: a short run that ends with a
	// pair must not seem faster than it was.
	if took := sent[last] - sent[0]; took > 0 && p.due(last) > 0 {
		s.Achieved = s.Asked * min(1, float64(p.due(last))/float64(took))
	}
	s.Kept = s.Achieved >= keptShare*s.Asked
	return s
}
