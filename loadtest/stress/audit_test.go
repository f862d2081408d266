package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// healthy is a load of one cycle that is answered as it should be, and what there is afterwards.
type healthy struct {
	*load
	shown map[string]*resource // by the API
	held  books.Books
}

// id is one of a test.
func id(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

// setup opens a shop at an API that makes whatever it is asked for, and shows what the test says.
func setup(t *testing.T) *healthy {
	t.Helper()
	h := &healthy{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, path := any(resource{ID: id(r.Header.Get("Idempotency-Key"))}), strings.TrimPrefix(r.URL.Path, "/v1")
		if r.Method == http.MethodGet {
			if h.shown[path] == nil {
				w.WriteHeader(http.StatusNotFound)
			}
			shown = h.shown[path]
		}
		_ = json.NewEncoder(w).Encode(shown)
	}))
	t.Cleanup(api.Close)
	cfg := config{Rate: 50, MaxLag: time.Second, BaseURL: api.URL, API1URL: "api-1", API2URL: "api-2", APIKey: "sk"}
	s, err := shop.Open(t.Context(), shop.Config{BaseURL: api.URL, APIKey: "sk", Name: "test",
		SKUs: productCount, Customers: customerCount})
	require.NoError(t, err)
	h.load = &load{config: cfg, shop: s, rows: map[journal.Purpose]*vegeta.Metrics{}}
	return h
}

// answer is what a request gets where all is well: the second of a race is told to wait.
func (h *healthy) answer(n int, url string) *vegeta.Result {
	q := h.sent[n]
	q.want.ID = id(q.key)
	r := &vegeta.Result{Code: http.StatusCreated, URL: url, Body: []byte(q.want.String()), Headers: http.Header{},
		Timestamp: h.began.Add(time.Duration(n) * 20 * time.Millisecond), Latency: 25 * time.Millisecond}
	switch {
	case q.kind == replay:
		r.Headers.Set("X-Idempotent-Replay", "true")
	case q.kind == reused:
		refuse(r, http.StatusUnprocessableEntity, "idempotency_key_reused")
	case isSecond(n):
		refuse(r, http.StatusConflict, "idempotency_in_progress")
	}
	return r
}

func refuse(r *vegeta.Result, status uint16, code string) {
	r.Code, r.Body = status, fmt.Appendf(nil, `{"code":%q}`, code)
}

// drive sends one cycle, whose answers are spoiled.
func (h *healthy) drive(t *testing.T, spoil func(q request, r *vegeta.Result)) {
	t.Helper()
	for n := range cycle {
		var target vegeta.Target
		require.NoError(t, h.next(&target))
		r := h.answer(n, target.URL)
		spoil(h.sent[n], r)
		h.enter(r)
	}
	acknowledged, known := h.answered, map[string]bool{}
	h.answered = nil // what was answered twice is there once
	for _, q := range acknowledged {
		if !known[q.want.ID] {
			h.answered = append(h.answered, q)
		}
		known[q.want.ID] = true
	}
	h.shown, h.held = h.asked(), h.books()
	h.answered = acknowledged
}

// books are what was acknowledged, and the customers.
func (h *healthy) books() books.Books {
	b := books.Books{Wallets: map[string]int64{}, Confirmations: map[string]int{}, WarehouseNotices: map[string]int{},
		Streams: []books.Stream{{}}}
	happened := func(kind, subject, about string) {
		e := books.Event{ID: id(kind + about), Subject: subject, Type: kind, Published: true, About: about}
		b.Events, b.Streams[0].IDs = append(b.Events, e), append(b.Streams[0].IDs, e.ID)
	}
	moved := func(about string, amount int64) {
		b.Transactions = append(b.Transactions, books.Transaction{ID: id("entry" + about), Subject: about, Volume: amount})
	}
	key := func(name, body, made string) {
		b.Keys = append(b.Keys, books.KeyRow{KeyID: books.KeyID{Account: h.APIKey, Key: name}, Status: "completed",
			ResponseStatus: http.StatusCreated, Body: body, Resource: made})
	}
	for _, customer := range h.shop.Customers {
		b.Wallets[customer] = h.well(wallet(customer)).Balance.Amount
		b.TopUps = append(b.TopUps, books.TopUp{ID: id("top-up" + customer), Customer: customer, Amount: topUp})
		key(customer, "", customer)
		key("top-up"+customer, "", id("top-up"+customer))
		moved(id("top-up"+customer), topUp)
		happened("customer.created", customer, customer)
		happened("wallet.topped_up", customer, id("top-up"+customer))
	}
	for i := range productCount {
		sku := h.shop.SKU(i)
		is := h.well("/products/" + sku).Stock
		b.Products = append(b.Products, books.Product{SKU: sku, Opening: shop.OpeningStock, Stock: is})
	}
	for path, r := range h.asked() {
		switch {
		case strings.HasPrefix(path, "/orders/"):
			items := map[string]int64{}
			for _, of := range r.Items {
				items[of.SKU] = of.Quantity
			}
			b.Orders = append(b.Orders, books.Order{ID: r.ID, Customer: r.CustomerID, Status: r.Status,
				Total: r.Total.Amount, Items: items})
			b.Confirmations[r.ID] = 1
			happened("order.placed", r.ID, r.ID)
		case strings.HasPrefix(path, "/payments/"):
			order := h.well("/orders/" + r.OrderID)
			b.Payments = append(b.Payments, books.Payment{ID: r.ID, Order: order.ID, Customer: order.CustomerID,
				Method: string(r.Method.Type), Status: r.Status, Amount: r.Amount.Amount})
			if r.Method.Type == "card" {
				b.Charges = append(b.Charges, books.Charge{Reference: order.ID, Status: "succeeded",
					Amount: r.Amount.Amount, Attempts: 1})
			}
			b.WarehouseNotices[order.ID] = 1
			moved(r.ID, r.Amount.Amount)
			happened("payment.succeeded", order.ID, r.ID)
		}
	}
	for _, q := range h.answered {
		for _, a := range h.attempts {
			if a.Key == q.key && a.Resource == q.want.ID {
				key(q.key, a.Body, q.want.ID)
				break
			}
		}
	}
	return b
}

// well is what the API shows of something when all is well.
func (h *healthy) well(path string) resource { return *h.asked()[path] }

// rules are those that the audit finds broken.
func (h *healthy) rules(t *testing.T) (broken []books.Rule) {
	t.Helper()
	require.NoError(t, h.readBack(t.Context()))
	h.check(h.held)
	for _, v := range h.found {
		require.NotEmpty(t, v.Detail)
		broken = append(broken, v.Rule)
	}
	return broken
}

func fine(request, *vegeta.Result) {}

func TestAudit_FindsNothingInAHealthyRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.drive(t, fine)
	require.Empty(t, h.rules(t), "%v", h.found)
	require.Len(t, h.rows, 9, "all kinds, and all of them together")
}

// on spoils the answers to one kind of request.
func on(k kind, do func(r *vegeta.Result)) func(request, *vegeta.Result) {
	return func(q request, r *vegeta.Result) {
		if q.kind == k {
			do(r)
		}
	}
}

// show changes what a 201 shows.
func show(change func(*resource)) func(*vegeta.Result) {
	return func(r *vegeta.Result) {
		var shown resource
		if json.Unmarshal(r.Body, &shown) == nil && shown.ID != "" {
			change(&shown)
			r.Body = []byte(shown.String())
		}
	}
}

func with(status uint16, code string) func(*vegeta.Result) {
	return func(r *vegeta.Result) { refuse(r, status, code) }
}

func marked(r *vegeta.Result) { r.Headers.Set("X-Idempotent-Replay", "true") }

// TestAudit_FindsEachBrokenAnswer plants one error in the answers to one kind of request.
func TestAudit_FindsEachBrokenAnswer(t *testing.T) {
	t.Parallel()
	created := func(r *vegeta.Result) {
		if r.Code != http.StatusCreated {
			r.Code, r.Body = http.StatusCreated, fmt.Appendf(nil, `{"id":%q}`, id("another"))
		}
	}
	tests := map[string]struct {
		rule  books.Rule
		spoil func(request, *vegeta.Result)
	}{
		"connection reset": {asDue, on(replay, func(r *vegeta.Result) {
			r.Code, r.Error = 0, "connection reset"
		})},
		"500 on a replay":              {asDue, on(replay, with(500, "internal"))},
		"503 in a race":                {asDue, on(racedOrder, with(503, "idempotency_in_progress"))},
		"429":                          {asDue, on(newOrder, with(429, "rate_limited"))},
		"409 on a replay":              {asDue, on(replay, with(409, "idempotency_in_progress"))},
		"another 409":                  {asDue, on(racedCard, with(409, "order_not_payable"))},
		"another 422":                  {asDue, on(reused, with(422, "validation_failed"))},
		"201 on a mismatch":            {asDue, on(reused, created)},
		"200 instead of 201":           {asDue, on(replay, func(r *vegeta.Result) { r.Code = http.StatusOK })},
		"replay without the header":    {asDue, on(replay, func(r *vegeta.Result) { r.Headers = nil })},
		"new key answered as a replay": {asDue, on(newOrder, marked)},
		"wrong total":                  {asAsked, on(newOrder, show(func(r *resource) { r.Total.Amount++ }))},
		"more in the order":            {asAsked, on(newOrder, show(func(r *resource) { r.Items[0].Quantity++ }))},
		"payment of another order":     {asAsked, on(cardPayment, show(func(r *resource) { r.OrderID = id("another") }))},
		"payment by another method":    {asAsked, on(walletPayment, show(func(r *resource) { r.Method.Type = "card" }))},
		"payment that is not done":     {asAsked, on(walletPayment, show(func(r *resource) { r.Status = "processing" }))},
		"replay of another order":      {verify.OneHistory, on(replay, show(func(r *resource) { r.ID = id("another") }))},
		"replay with another body": {verify.OneHistory, on(replay, func(r *vegeta.Result) {
			r.Body = append(r.Body, ' ')
		})},
		"both of a race have an effect": {verify.OneHistory, on(racedOrder, created)},
		"both of a race are refused":    {verify.Decided, on(racedOrder, with(409, "idempotency_in_progress"))},
		"both of a race are new, with one answer": {asAsked, func(q request, r *vegeta.Result) {
			if q.want.ID = id(q.key); q.kind == racedOrder {
				r.Code, r.Body = http.StatusCreated, []byte(q.want.String())
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.drive(t, test.spoil)
			require.Contains(t, h.rules(t), test.rule, "%v", h.found)
		})
	}
}

// planted are errors in what there is after a healthy load.
var planted = map[string]struct {
	rule  books.Rule
	plant func(*healthy)
}{
	"the API shows an order as pending": {asAsked, func(h *healthy) {
		h.shown["/orders/"+h.held.Payments[0].Order].Status = "pending"
	}},
	"the API has lost a payment": {asAsked, func(h *healthy) {
		delete(h.shown, "/payments/"+h.held.Payments[0].ID)
	}},
	"the API has lost an order": {asAsked, func(h *healthy) { delete(h.shown, "/orders/"+h.held.Orders[0].ID) }},
	"the API shows other money": {asAsked, func(h *healthy) {
		h.shown[wallet(h.shop.Customers[0])].Balance.Amount--
	}},
	"the API shows other stock":    {asAsked, func(h *healthy) { h.shown["/products/"+h.shop.SKU(0)].Stock-- }},
	"the provider was asked twice": {askedOnce, func(h *healthy) { h.held.Charges[0].Attempts = 2 }},
	"events are late":              {inTime, func(h *healthy) { h.lag[1] = time.Second + 1 }},
	"requests were late":           {atRate, func(h *healthy) { h.Rate = 60 }},
	"in progress alone": {verify.WaitedFor, func(h *healthy) {
		h.attempts = append(h.attempts, journal.Attempt{Key: "alone", Status: 409, Code: "idempotency_in_progress"})
	}},
	"the other request left no answer": {verify.ReusedForAReason, func(h *healthy) {
		h.attempts = append(h.attempts, journal.Attempt{Key: "alone", Status: 422, Code: "idempotency_key_reused"})
	}},
	"another answer is kept": {verify.AnswersKept, func(h *healthy) { h.key().Body = "another" }},
	"no key of an order":     {books.OneKeyPerEffect, func(h *healthy) { h.key().Resource = "" }},
	"second order under one key": {books.OneKeyPerEffect, func(h *healthy) {
		h.held.Orders = append(h.held.Orders, books.Order{ID: id("another")})
	}},
	"missing charge": {books.OneCharge, func(h *healthy) { h.held.Charges = h.held.Charges[1:] }},
	"second charge": {books.OneCharge, func(h *healthy) {
		h.held.Charges = append(h.held.Charges, h.held.Charges[0])
	}},
	"charge of another amount":    {books.OneCharge, func(h *healthy) { h.held.Charges[0].Amount-- }},
	"charge for a wallet payment": {books.OneCharge, func(h *healthy) { h.held.Charges[0].Reference = id("another") }},
	"no entry in the ledger": {books.LedgerBalances, func(h *healthy) {
		h.held.Transactions = h.held.Transactions[1:]
	}},
	"wallet debited twice":         {books.WalletsMatch, func(h *healthy) { h.held.Wallets[h.shop.Customers[0]]-- }},
	"stock reserved twice":         {books.StockMatches, func(h *healthy) { h.held.Products[0].Stock-- }},
	"paid order is pending":        {books.OrdersMatch, func(h *healthy) { h.order("paid").Status = "pending" }},
	"unpaid order is paid":         {books.OrdersMatch, func(h *healthy) { h.order("pending").Status = "paid" }},
	"payment still processing":     {books.NothingOpen, func(h *healthy) { h.held.Payments[0].Status = "processing" }},
	"record still in progress":     {books.NothingOpen, func(h *healthy) { h.held.Pending = []string{"idempotency:x"} }},
	"change without an event":      {books.OneEventEach, func(h *healthy) { h.held.Events = h.held.Events[1:] }},
	"event that was not published": {books.EventsOnce, func(h *healthy) { h.held.Events[0].Published = false }},
	"event without an effect":      {books.EventsOnce, func(h *healthy) { clear(h.held.Confirmations) }},
}

// key is the last one of the load.
func (h *healthy) key() *books.KeyRow { return &h.held.Keys[len(h.held.Keys)-1] }

func (h *healthy) order(status string) *books.Order {
	for i, o := range h.held.Orders {
		if o.Status == status {
			return &h.held.Orders[i]
		}
	}
	return nil
}

func TestAudit_FindsEachPlantedError(t *testing.T) {
	t.Parallel()
	broken := map[books.Rule]bool{asDue: true, verify.OneHistory: true, verify.Decided: true} // by answers
	for name, test := range planted {
		broken[test.rule] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.drive(t, fine)
			test.plant(h)
			require.Contains(t, h.rules(t), test.rule, "%v", h.found)
		})
	}
	for _, rule := range promises {
		require.True(t, broken[rule], "no test breaks: %s", rule)
	}
}

func wallet(customer string) string { return "/customers/" + customer + "/wallet" }
