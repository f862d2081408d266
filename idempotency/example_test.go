package idempotency_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// A shop whose POST /orders can be retried. With chi it would be
// router.Use(keys.Handler).
func Example() {
	orders := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"order":%d}`, orders)
	})
	keys := idempotency.New(memstore.New(),
		func(r *http.Request) *idempotency.Policy {
			if r.Method != http.MethodPost {
				return nil
			}
			return &idempotency.Policy{Required: true, TTL: 24 * time.Hour, ExcludedFields: []string{"sent_at"}}
		},
		idempotency.WithScope(func(r *http.Request) string { return r.Header.Get("X-Account") }))
	server := httptest.NewServer(keys.Handler(mux))
	defer server.Close()

	post := func(key, body string) {
		r, _ := http.NewRequest(http.MethodPost, server.URL+"/orders", strings.NewReader(body))
		r.Header.Set("X-Account", "ada")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		var answer struct {
			Order int
			Code  string
		}
		_ = json.NewDecoder(response.Body).Decode(&answer)
		replay := response.Header.Get("X-Idempotent-Replay") == "true"
		fmt.Printf("%d order=%d replay=%t code=%q\n", response.StatusCode, answer.Order, replay, answer.Code)
	}
	post("key-1", `{"sku": "tee", "sent_at": 1}`)
	post("key-1", `{"sent_at": 2, "sku": "tee"}`)
	post("key-1", `{"sku": "mug"}`)
	post("key-2", `{"sku": "mug"}`)
	post("", `{"sku": "mug"}`)
	http.DefaultClient.CloseIdleConnections()

	// Output:
	// 201 order=1 replay=false code=""
	// 201 order=1 replay=true code=""
	// 422 order=0 replay=false code="idempotency_key_reused"
	// 201 order=2 replay=false code=""
	// 400 order=0 replay=false code="idempotency_key_missing"
}

// A handler with an authority of its own: the rows of a database, here a map.
func ExampleClaim() {
	kept := map[string]string{} // stands for a table with a unique index on scope and key
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claim := idempotency.ClaimFrom(r.Context())
		answer, found := kept[claim.Scope+"/"+claim.Key]
		if found {
			claim.Replayed()
		} else {
			answer = "paid once"
			kept[claim.Scope+"/"+claim.Key] = answer // in the transaction that pays
		}
		_, _ = fmt.Fprint(w, answer)
	})
	policy := idempotency.Policy{Required: true, FailureMode: idempotency.FailOpen}
	for range 2 { // each time with an empty store, as after a failover that lost everything
		keys := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope())
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set(idempotency.HeaderKey, "key-1")
		w := httptest.NewRecorder()
		keys.Handler(handler).ServeHTTP(w, r)
		fmt.Printf("%s, replay: %t\n", w.Body, w.Header().Get(idempotency.HeaderReplay) == "true")
	}

	// Output:
	// paid once, replay: false
	// paid once, replay: true
}
