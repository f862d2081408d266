package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// The promises that this package checks, beside those of the books. Each has a test that breaks it.
const (
	answeredAsDue books.Rule = "every request was answered, with the status that was due"
	marked        books.Rule = "every replay is marked as one, and no first answer is"
	sameBytes     books.Rule = "every answer under a key has the same bytes"
	fits          books.Rule = "every answer fits its request"
	oneEffect     books.Rule = "no key was answered twice as new"
	acknowledged  books.Rule = "every key got its order or payment"
	asAnswered    books.Rule = "every acknowledged order and payment is there once, as it was answered, and no other"
	askedOnce     books.Rule = "the provider was asked once for each charge"
	inTime        books.Rule = "every event was published and had its effect in time"
)

// ofAnswers are checked by the answers alone, ofBooks once all is read back.
var (
	ofAnswers = []books.Rule{answeredAsDue, marked, sameBytes, fits, oneEffect, acknowledged}
	ofBooks   = []books.Rule{asAnswered, books.OneCharge, askedOnce, books.OrdersMatch, books.WalletsMatch, books.StockMatches}
)

// judge compares an answer with the plan: it notes the rule that it breaks by itself, if any, and
// the ID of what it acknowledges.
func (a *answer) judge() {
	a.Code = shop.ProblemCode(a.body)
	outcome := a.Outcome()
	switch {
	case a.kind == mismatch && outcome == journal.Reused && a.Status == http.StatusUnprocessableEntity,
		a.kind.raced() && outcome == journal.InProgress && a.Status == http.StatusConflict:
	case a.kind == mismatch, outcome != journal.Succeeded, a.Status != http.StatusCreated:
		a.wrong = answeredAsDue
	case !a.kind.raced() && a.Replayed != (a.kind == replay):
		a.wrong = marked
		a.read()
	case !a.read():
		a.wrong = fits
	}
}

// read takes the ID from a 201, and reports whether it is the answer to this request.
func (a *answer) read() bool {
	if a.method == "" {
		var o client.Order
		err := json.Unmarshal(a.body, &o)
		a.Resource = o.ID.String()
		return err == nil && reflect.DeepEqual(orderOf(o), a.placed(a.Resource, "pending"))
	}
	var p client.Payment
	err := json.Unmarshal(a.body, &p)
	a.Resource = p.ID.String()
	return err == nil && paymentOf(p, a.customer) == a.payment(a.Resource)
}

// byKey returns the first 201 of each key, and what is wrong with the answers.
func byKey(answers []answer) (kept map[string]answer, found []books.Violation) {
	kept = map[string]answer{}
	fresh := map[string]int{} // 201s that were no replay, so effects
	for _, a := range answers {
		complain := func(rule books.Rule, format string, args ...any) {
			found = append(found, books.Broken(rule, "%s, key %s: "+format, slices.Concat([]any{a.kind, a.key}, args)...))
		}
		if a.wrong != "" {
			complain(a.wrong, "asked for %d of order %q, got %d %s %s", a.amount, a.order, a.Status, a.body, a.Error)
		}
		if a.Status != http.StatusCreated || a.kind == mismatch {
			continue
		}
		if !a.Replayed {
			if fresh[a.key]++; fresh[a.key] > 1 {
				complain(oneEffect, "answered %d times as new", fresh[a.key])
			}
		}
		if first, known := kept[a.key]; !known {
			kept[a.key] = a
		} else if !bytes.Equal(first.body, a.body) {
			complain(sameBytes, "%s and then %s", first.body, a.body)
		}
	}
	missing := map[string]bool{}
	for _, a := range answers {
		if _, known := kept[a.key]; !known && !missing[a.key] {
			missing[a.key] = true
			found = append(found, books.Broken(acknowledged, "%s, key %s", a.kind, a.key))
		}
	}
	return kept, found
}

// check compares what was acknowledged with what is there, and what is there with itself. It finds
// nothing when every key had one effect, and nothing else had any.
func check(kept map[string]answer, b books.Books) []books.Violation {
	want, is, paid := map[string]string{}, map[string]string{}, map[string]bool{}
	enter := func(rows map[string]string, id string, row any) { rows[id] += fmt.Sprintf("%+v", row) }
	for _, a := range kept {
		if a.method != "" {
			enter(want, a.Resource, a.payment(a.Resource))
			paid[a.order] = true
		}
	}
	for _, a := range kept {
		status := "pending"
		if paid[a.Resource] {
			status = "paid"
		}
		if a.method == "" {
			enter(want, a.Resource, a.placed(a.Resource, status))
		}
	}
	for _, o := range b.Orders {
		enter(is, o.ID, o)
	}
	for _, p := range b.Payments {
		enter(is, p.ID, p)
	}
	found := books.Differ(asAnswered, "order or payment", want, is, nil)
	for _, c := range b.Charges { // nothing fails in a load test
		if c.Attempts != 1 {
			found = append(found, books.Broken(askedOnce, "order %s: %+v", c.Reference, c))
		}
	}
	return append(found, books.CheckShop(b)...)
}

// audit reads everything back, and says what is wrong with it. The error is why nothing was
// compared.
func (l *load) audit(ctx context.Context) (o *outcome, unread error) {
	kept, found := byKey(l.answers)
	held, err := l.read(ctx, kept)
	var events *published
	if err == nil && l.cfg.Database != "none" {
		events, err = readEvents(ctx, l.cfg.Database, l.shop.Opened)
	}
	if err != nil {
		err = fmt.Errorf("read everything back: %w", err)
	} else {
		found = slices.Concat(found, check(kept, held), events.check(l.cfg.maxLag))
	}
	return l.conclude(kept, found, events, err), err
}

// read collects what the API and the provider's list show of the shop: its orders, wallets and
// stock, the acknowledged payments, and their charges.
func (l *load) read(ctx context.Context, kept map[string]answer) (b books.Books, err error) {
	s := l.shop
	b.Wallets, b.Products = map[string]int64{}, make([]books.Product, productCount)
	ours := map[string]bool{} // orders
	for _, customer := range s.Customers {
		var wallet client.Wallet
		orders, err := ordersOf(ctx, s.API, customer)
		if err == nil {
			err = s.Get(ctx, "/customers/"+customer+"/wallet", &wallet)
		}
		if err != nil {
			return b, err
		}
		b.TopUps = append(b.TopUps, books.TopUp{Customer: customer, Amount: 2 * topUp})
		b.Orders, b.Wallets[customer] = append(b.Orders, orders...), wallet.Balance.Amount
	}
	for _, o := range b.Orders {
		ours[o.ID] = true
	}
	var paid []answer
	for _, a := range kept {
		if a.method == "" {
			ours[a.Resource] = true
		} else {
			paid = append(paid, a)
		}
	}
	b.Payments = make([]books.Payment, len(paid))
	err = shop.Each(ctx, productCount+len(paid), func(ctx context.Context, i int) error {
		if i < productCount {
			var product client.Product
			err := s.Get(ctx, "/products/"+s.SKU(i), &product)
			b.Products[i] = books.Product{SKU: s.SKU(i), Opening: shop.OpeningStock, Stock: product.Stock}
			return err
		}
		i -= productCount
		var payment client.Payment
		err := s.Get(ctx, "/payments/"+paid[i].Resource, &payment)
		if errors.Is(err, shop.ErrNotFound) {
			return nil // the check misses it
		}
		b.Payments[i] = paymentOf(payment, paid[i].customer)
		return err
	})
	if err != nil {
		return b, err
	}
	b.Payments = slices.DeleteFunc(b.Payments, func(p books.Payment) bool { return p.ID == "" })
	b.Charges, err = books.ProviderList(ctx, shop.API{BaseURL: l.cfg.PSPURL, HTTP: s.HTTP}, "charges")
	b.Charges = slices.DeleteFunc(b.Charges, func(c books.Charge) bool { return !ours[c.Reference] })
	return b, err
}

func ordersOf(ctx context.Context, api shop.API, customer string) (rows []books.Order, err error) {
	for cursor := ""; ; {
		var page client.OrderPage
		if err := api.Get(ctx, "/orders?limit=100&customer_id="+customer+cursor, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Data {
			rows = append(rows, orderOf(o))
		}
		if page.NextCursor == nil {
			return rows, nil
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

func orderOf(o client.Order) books.Order {
	items := map[string]int64{}
	for _, item := range o.Items {
		items[item.Sku] += int64(item.Quantity)
	}
	return books.Order{ID: o.ID.String(), Customer: o.CustomerID.String(), Status: string(o.Status), Total: o.Total.Amount, Items: items}
}

// paymentOf needs the customer, who is the order's: the API does not show it.
func paymentOf(p client.Payment, customer string) books.Payment {
	return books.Payment{ID: p.ID.String(), Order: p.OrderID.String(), Customer: customer, Method: string(p.Method.Type),
		Status: string(p.Status), Amount: p.Amount.Amount, Refunded: p.Refunded.Amount}
}
