package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// What is promised where there are no faults, beside the promises of a fault campaign.
const (
	asDue     books.Rule = "every answer is the one that was due, and each replay is marked as one"
	asAsked   books.Rule = "answers and the API show what was asked for, and nothing else"
	askedOnce books.Rule = "the provider was asked once for each charge"
	inTime    books.Rule = "99 of 100 events have their effect in time"
	atRate    books.Rule = "requests were sent at 95 % of the rate that was asked for, or more"
)

// promises are those that a load can break. Each has a test that breaks it.
var promises = []books.Rule{
	asDue, asAsked, askedOnce, inTime, atRate,
	verify.OneHistory, verify.WaitedFor, verify.ReusedForAReason, verify.AnswersKept, verify.Decided,
	books.OneKeyPerEffect, books.OneCharge, books.LedgerBalances, books.WalletsMatch, books.StockMatches,
	books.OrdersMatch, books.NothingOpen, books.OneEventEach, books.EventsOnce,
}

// check applies the rules that need what the stores and the provider hold, or the whole load.
func (l *load) check(held books.Books) {
	for _, c := range held.Charges {
		if c.Attempts != 1 {
			l.complain(askedOnce, books.KeyID{}, "order %s: %+v", c.Reference, c)
		}
	}
	if l.lag[1] > l.MaxLag {
		l.complain(inTime, books.KeyID{}, "after %s (p99), more than %s", l.lag[1], l.MaxLag)
	}
	for _, metrics := range l.rows {
		metrics.Close()
	}
	if rate := l.rows[all].Rate; rate < 0.95*float64(l.Rate) { // the latencies are those of a gentler load
		l.complain(atRate, books.KeyID{}, "%.1f a second", rate)
	}
	l.found = slices.Concat(l.found, verify.All(l.attempts, held, time.Second),
		verify.InProgressForAReason(l.attempts, func(journal.Attempt) bool { return false }))
}

// asked is what the API has to show after all that was acknowledged, by its path.
func (l *load) asked() map[string]*resource {
	want := map[string]*resource{}
	for _, customer := range l.shop.Customers {
		want["/customers/"+customer+"/wallet"] = &resource{CustomerID: customer, Balance: shop.Dollars(topUp)}
	}
	for i := range productCount {
		want["/products/"+l.shop.SKU(i)] = &resource{Stock: shop.OpeningStock}
	}
	for _, q := range l.answered { // an order comes before its payment
		if q.want.OrderID == "" {
			want["/orders/"+q.want.ID] = &q.want
			for _, of := range q.want.Items {
				want["/products/"+of.SKU].Stock -= of.Quantity
			}
			continue
		}
		order := want["/orders/"+q.want.OrderID]
		want["/payments/"+q.want.ID], order.Status = &q.want, "paid"
		if q.want.Method.Type == "wallet" {
			want["/customers/"+order.CustomerID+"/wallet"].Balance.Amount -= q.want.Amount.Amount
		}
	}
	return want
}

// readBack compares what the API alone shows with what was asked for. An effect that nobody asked
// for shows in the stock or in a wallet.
func (l *load) readBack(ctx context.Context) error {
	want := l.asked()
	paths := slices.Collect(maps.Keys(want))
	return shop.Each(ctx, len(paths), shop.AtOnce, func(ctx context.Context, i int) error {
		var shown resource
		if err := l.shop.Get(ctx, paths[i], &shown); err != nil && !errors.Is(err, shop.ErrNotFound) {
			return err
		}
		if shown.String() != want[paths[i]].String() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.complain(asAsked, books.KeyID{}, "%s: want %s, is %s", paths[i], want[paths[i]], shown)
		}
		return nil
	})
}

// readBooks reads what the stores and the provider hold, once events have had their effects, or the
// time for that is over.
func (l *load) readBooks(ctx context.Context) (books.Books, error) {
	opening := map[string]int64{}
	for i := range productCount {
		opening[l.shop.SKU(i)] = shop.OpeningStock
	}
	reader := books.Reader{DatabaseURL: l.Database, RedisAddr: l.RedisAddr, ProviderURL: l.PSPURL,
		APIKeys: []string{l.APIKey}, Opening: map[string]map[string]int64{l.APIKey: opening}}
	held, err := reader.Await(ctx, 10*time.Second, books.Books.Consumed)
	held.ProviderEvents = nil // whether one was acted on again takes another delivery to tell: campaigns do
	return held, err
}

// lagSQL has how late events had their effects since the begin of their transactions, so a little
// more than since the commits.
const lagSQL = `SELECT coalesce(percentile_disc('{0.5, 0.99, 1}'::float8[])
		WITHIN GROUP (ORDER BY inbox.created_at - outbox.created_at), '{0, 0, 0}')
	FROM outbox JOIN inbox USING (event_id) WHERE outbox.created_at >= $1`

func (l *load) readLag(ctx context.Context) error {
	return books.Reader{DatabaseURL: l.Database}.Query(ctx, &l.lag, lagSQL, l.shop.Opened)
}
