package main

import (
	"time"
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

var kinds = []kind{newOrder, cardPay, walletPay, pairOrder, pairCard, pairWallet, duplicate, replay, mismatch}

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
	if n >= p.requests {
		return 0, true
	}
	return max(0, p.due(n)-elapsed), false
}

// Rate is the mean rate; vegeta asks for it to draw.
func (p pacer) Rate(time.Duration) float64 { return float64(p.rate) }
