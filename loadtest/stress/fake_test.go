package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// fakeShop is oncepay and its provider in memory: enough for the stress to
// pass, and with switches to do each thing wrong.
type fakeShop struct {
	mu        sync.Mutex
	answers   map[string]fakeAnswer // by key
	products  map[string]*fakeProduct
	orders    []*fakeOrder
	payments  map[string]map[string]any
	charges   []map[string]any
	wallets   map[string]int64
	forgetful bool // a raced duplicate has a second effect
	uncharged bool // card payments are never charged
	busy      bool // each resource is refused once before it can be read
	refused   map[string]bool
	failEvery int // every n-th POST of the load is a 500
	posts     int
}

type fakeAnswer struct {
	fingerprint [32]byte
	body        []byte
}

type fakeProduct struct{ price, stock int64 }

type fakeOrder struct {
	ID         string           `json:"id"`
	CustomerID string           `json:"customer_id"`
	Status     string           `json:"status"`
	Items      []map[string]any `json:"items"`
	Total      map[string]any   `json:"total"`
}

func newFakeShop(t *testing.T) (*fakeShop, string) {
	t.Helper()
	f := &fakeShop{
		answers: map[string]fakeAnswer{}, products: map[string]*fakeProduct{},
		payments: map[string]map[string]any{}, wallets: map[string]int64{}, refused: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/products/{sku}", f.putProduct)
	mux.HandleFunc("GET /v1/products/{sku}", f.getProduct)
	mux.HandleFunc("POST /v1/customers", f.once(f.createCustomer))
	mux.HandleFunc("GET /v1/customers/{id}/wallet", f.getWallet)
	mux.HandleFunc("POST /v1/customers/{id}/top-ups", f.once(f.createTopUp))
	mux.HandleFunc("POST /v1/orders", f.once(f.createOrder))
	mux.HandleFunc("GET /v1/orders", f.listOrders)
	mux.HandleFunc("POST /v1/orders/{id}/payments", f.once(f.createPayment))
	mux.HandleFunc("GET /v1/payments/{id}", f.getPayment)
	mux.HandleFunc("GET /v1/charges", f.listCharges)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# HELP x y\n%s 3.3554432e+07\n", residentMetric)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.isBusy(r) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return f, server.URL
}

func (f *fakeShop) isBusy(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.refused[r.URL.String()]
	f.refused[r.URL.String()] = true
	return f.busy && first && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/")
}

// once is idempotency by one lock around everything.
func (f *fakeShop) once(do func(path, customer string, body map[string]any) map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.posts++
		if f.failEvery > 0 && f.posts > 100 && f.posts%f.failEvery == 0 {
			http.Error(w, `{"code":"internal"}`, http.StatusInternalServerError)
			return
		}
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		delete(body, "request_nonce")
		canonical, _ := json.Marshal(body)
		sum, key := sha256.Sum256(append([]byte(r.URL.Path), canonical...)), r.Header.Get("Idempotency-Key")
		known, ok := f.answers[key]
		if ok && known.fingerprint != sum {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"code":"idempotency_key_reused"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if ok && !(f.forgetful && r.URL.Path == "/v1/orders") {
			w.Header().Set("X-Idempotent-Replay", "true")
		} else {
			known.fingerprint = sum
			known.body, _ = json.Marshal(do(r.URL.Path, r.PathValue("id"), body))
			f.answers[key] = known
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(known.body)
	}
}

func usd(amount int64) map[string]any { return map[string]any{"amount": amount, "currency": "USD"} }

func send(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fakeShop) putProduct(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Price struct{ Amount int64 }
		Stock int64
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.products[r.PathValue("sku")] = &fakeProduct{body.Price.Amount, body.Stock}
	w.WriteHeader(http.StatusCreated)
}

func (f *fakeShop) getProduct(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	send(w, map[string]any{"sku": r.PathValue("sku"), "stock": f.products[r.PathValue("sku")].stock})
}

func (f *fakeShop) createCustomer(string, string, map[string]any) map[string]any {
	return map[string]any{"id": uuid.NewString()}
}

func (f *fakeShop) createTopUp(_, customer string, body map[string]any) map[string]any {
	f.wallets[customer] += int64(body["amount"].(map[string]any)["amount"].(float64))
	return map[string]any{"id": uuid.NewString(), "customer_id": customer}
}

func (f *fakeShop) getWallet(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	send(w, map[string]any{"customer_id": r.PathValue("id"), "balance": usd(f.wallets[r.PathValue("id")])})
}

func (f *fakeShop) createOrder(_, _ string, body map[string]any) map[string]any {
	o := &fakeOrder{ID: uuid.NewString(), CustomerID: body["customer_id"].(string), Status: "pending"}
	total := int64(0)
	for _, i := range body["items"].([]any) {
		item := i.(map[string]any)
		p, quantity := f.products[item["sku"].(string)], int64(item["quantity"].(float64))
		p.stock -= quantity
		total += p.price * quantity
		o.Items = append(o.Items, map[string]any{"sku": item["sku"], "quantity": quantity, "unit_price": usd(p.price)})
	}
	o.Total = usd(total)
	f.orders = append(f.orders, o)
	return map[string]any{"id": o.ID, "customer_id": o.CustomerID, "status": "pending", "items": o.Items, "total": o.Total}
}

// listOrders gives pages of 3, so that the cursor is used.
func (f *fakeShop) listOrders(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	page, skipped := []*fakeOrder{}, 0
	for _, o := range f.orders {
		if o.CustomerID != r.URL.Query().Get("customer_id") {
			continue
		}
		if skipped++; skipped > from && len(page) < 4 {
			page = append(page, o)
		}
	}
	if len(page) < 4 {
		send(w, map[string]any{"data": page})
		return
	}
	send(w, map[string]any{"data": page[:3], "next_cursor": strconv.Itoa(from + 3)})
}

func (f *fakeShop) createPayment(path, order string, body map[string]any) map[string]any {
	o := f.find(order)
	o.Status = "paid"
	method := body["method"].(map[string]any)["type"]
	amount := o.Total["amount"].(int64)
	if method == "wallet" {
		f.wallets[o.CustomerID] -= amount
	} else if !f.uncharged {
		f.charges = append(f.charges, map[string]any{"id": "ch", "reference": order, "status": "succeeded", "amount": amount, "attempts": 1})
	}
	p := map[string]any{
		"id": uuid.NewString(), "order_id": strings.Split(path, "/")[3], "status": "succeeded",
		"method": map[string]any{"type": method}, "amount": usd(amount),
	}
	f.payments[p["id"].(string)] = p
	return p
}

func (f *fakeShop) find(order string) *fakeOrder {
	for _, o := range f.orders {
		if o.ID == order {
			return o
		}
	}
	return nil
}

func (f *fakeShop) getPayment(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	send(w, f.payments[r.PathValue("id")])
}

func (f *fakeShop) listCharges(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	send(w, map[string]any{"data": f.charges})
}
