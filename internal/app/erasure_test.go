package app

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestErasure_LeavesNothingOfACustomer in any table of PostgreSQL or key of Redis, and no second
// effect: orders in each state keep no address, retries get 409, and the ledger is as it was.
func TestErasure_LeavesNothingOfACustomer(t *testing.T) {
	t.Parallel()
	for _, store := range []string{StoreRedis, StorePostgres} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			cfg.Store, cfg.MailURL, cfg.MailFrom = store, "smtp://"+unusedAddr(t), "shop@example.com"
			r := serveSeeded(t, cfg)
			sent := r.shopping(t, "Zaphod", "Betelgeuse Five 42")
			r.shopping(t, "Trillian", "Islington 1")
			r.called(t, http.MethodPatch, "/v1/customers/"+sent.customer, "renamed", `{"name":"Beeblebrox the First"}`)
			require.Eventually(t, func() bool { return count(t, r.servers.pool, "order_confirmations WHERE due_at IS NOT NULL") == 10 }, patience, pause)
			personal := []string{"Zaphod", "zaphod@", "Betelgeuse", "Beeblebrox"}
			for _, text := range personal[:3] {
				places := strings.Join(r.findEverywhere(t, text), " ")
				require.Contains(t, places, "idempotency_keys", text)
				require.Contains(t, places, map[string]string{StoreRedis: "Redis", StorePostgres: "idempotency_records"}[store], text)
			}
			ledger := r.ledger(t)

			var out bytes.Buffer
			for range 2 {
				require.NoError(t, EraseCustomer(t.Context(), cfg, slog.New(slog.DiscardHandler), &out, uuid.MustParse(sent.customer)))
			}
			first, second, _ := strings.Cut(out.String(), "- what is elsewhere")
			require.Contains(t, first, "4 shipping addresses, 5 waiting mails, 7 kept answers")
			require.Contains(t, second, "0 shipping addresses, 0 waiting mails, 0 kept answers")
			for _, text := range personal {
				require.Empty(t, r.findEverywhere(t, text), text)
			}
			require.NotEmpty(t, r.findEverywhere(t, "Trillian"), "another customer stays")
			require.Equal(t, ledger, r.ledger(t))
			require.Equal(t, 5, count(t, r.servers.pool, "order_confirmations WHERE due_at IS NOT NULL"))

			effects := count(t, r.servers.pool, "outbox")
			for _, request := range sent.requests {
				for range 2 {
					again := r.call(request.method, request.path, request.key, request.body)
					if strings.Contains(request.answer.body, `"email"`) || strings.Contains(request.answer.body, `"shipping_address"`) {
						require.Equal(t, http.StatusConflict, again.status, again.body)
						require.Equal(t, "idempotency_key_expired", again.field(t, "code"))
						require.NotEmpty(t, again.field(t, "resource"))
					} else {
						require.Equal(t, request.answer.body, again.body)
					}
				}
			}
			require.Equal(t, effects, count(t, r.servers.pool, "outbox"))
			require.Empty(t, r.findEverywhere(t, "Betelgeuse"), "a retry puts nothing back")
		})
	}
}

// TestErasure_IsRepeatedAfterAnOutageOfRedis: until then Redis may have copies.
func TestErasure_IsRepeatedAfterAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	r := serveSeeded(t, cfg)
	sent := r.shopping(t, "Zaphod", "Betelgeuse Five 42")
	customer, away, log := uuid.MustParse(sent.customer), cfg, slog.New(slog.DiscardHandler)
	away.RedisURL = "redis://" + unusedAddr(t)
	require.ErrorContains(t, EraseCustomer(t.Context(), away, log, &bytes.Buffer{}, customer), "repeat the command")
	require.NotEmpty(t, r.findEverywhere(t, "Betelgeuse"))
	require.NoError(t, EraseCustomer(t.Context(), cfg, log, &bytes.Buffer{}, customer))
	require.Empty(t, r.findEverywhere(t, "Betelgeuse"))
	away.RedisURL = ""
	require.ErrorContains(t, EraseCustomer(t.Context(), away, log, &bytes.Buffer{}, customer), "REDIS_URL must be set")
}

// shopped is what a customer has done.
type shopped struct {
	customer string
	requests []keyedRequest
}

type keyedRequest struct {
	method, path, key, body string
	answer                  answer
}

// called is a request that succeeds.
func (r *testReplica) called(t *testing.T, method, path, key, body string) keyedRequest {
	t.Helper()
	answer := r.call(method, path, key, body)
	require.Less(t, answer.status, 300, answer.body)
	return keyedRequest{method, path, key, body, answer}
}

// shopping makes a customer with orders that are pending, cancelled, paid and expired, each with an
// address.
func (r *testReplica) shopping(t *testing.T, name, street string) (s shopped) {
	t.Helper()
	keys := uuid.NewString() // a key is the client's, and stays
	do := func(method, path, key, body string) string {
		done := r.called(t, method, path, keys+key, body)
		s.requests = append(s.requests, done)
		return done.answer.field(t, "id")
	}
	s.customer = do(http.MethodPost, "/v1/customers", "", fmt.Sprintf(`{"name":%q,"email":"%s@example.com"}`, name, strings.ToLower(name)))
	for _, state := range []string{"pending", "cancelled", "paid", "expired"} {
		order := do(http.MethodPost, "/v1/orders", state, `{"customer_id":"`+s.customer+`","items":[{"sku":"tee-black","quantity":1}]}`)
		do(http.MethodPatch, "/v1/orders/"+order, "address"+state, `{"shipping_address":{"line1":"`+street+`","city":"C","postal_code":"1","country":"AQ"}}`)
		switch state {
		case "cancelled":
			do(http.MethodPatch, "/v1/orders/"+order, "cancel", `{"status":"cancelled"}`)
		case "paid":
			do(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_visa"))
		case "expired":
			_, err := r.servers.pool.Exec(t.Context(), "UPDATE orders SET expires_at = now() WHERE id = $1", order)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				return r.call(http.MethodGet, "/v1/orders/"+order, "", "").field(t, "status") == state
			}, patience, pause)
		}
	}
	return s
}

// findEverywhere names the tables of PostgreSQL and the keys of Redis that have a text.
func (r *testReplica) findEverywhere(t *testing.T, text string) (places []string) {
	t.Helper()
	rows, err := r.servers.pool.Query(t.Context(), "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, tables, "customers")
	for _, table := range tables {
		var found int // bytes are shown in hexadecimal
		statement := "SELECT count(*) FROM " + table + " AS x WHERE x::text ILIKE '%' || $1 || '%' OR x::text LIKE '%' || $2 || '%'"
		require.NoError(t, r.servers.pool.QueryRow(t.Context(), statement, text, hex.EncodeToString([]byte(text))).Scan(&found))
		if found > 0 {
			places = append(places, table)
		}
	}
	keys, err := r.servers.redis.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		dumped := r.servers.redis.Get(t.Context(), key).Val()
		if dumped == "" { // the stream of events
			dumped = fmt.Sprint(r.servers.redis.XRange(t.Context(), key, "-", "+").Val())
		}
		if strings.Contains(strings.ToLower(key+dumped), strings.ToLower(text)) {
			places = append(places, "Redis "+key)
		}
	}
	return places
}

// ledger is its sum and the number of its entries.
func (r *testReplica) ledger(t *testing.T) (sums [2]int64) {
	t.Helper()
	require.NoError(t, r.servers.pool.QueryRow(t.Context(), "SELECT sum(amount), count(*) FROM ledger_entries").Scan(&sums[0], &sums[1]))
	require.Zero(t, sums[0])
	require.NotZero(t, sums[1])
	return sums
}
