package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// outside is the service of somebody else, built on the authority alone. It places orders by its
// own statements, in one transaction with the key. All other changes with a key are operations at
// a provider, which is the shop.
type outside struct {
	pool *pgxpool.Pool
	keys *authority.Keys
	shop http.Handler
}

const (
	outsideTable = "outside_keys"
	shopTimeout  = 10 * time.Second // longer than the deadline of the shop's handlers in a campaign
	attemptLease = 5 * time.Second  // longer than the provider of a card is given
	resumeEvery  = time.Second

	callsSQL   = `SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS outside_calls (id uuid PRIMARY KEY, request bytea NOT NULL)`
	accountSQL = `SELECT account_id FROM api_keys WHERE hash = $1`
	orderSQL   = `INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
		VALUES ($1, $2, $3, 'pending', 1, 'USD', now(), now(), now() + interval '20 seconds')`
	itemSQL = `WITH taken AS (UPDATE products SET stock = stock - $5, version = version + 1 WHERE account_id = $2 AND sku = $4 RETURNING *)
		INSERT INTO order_items (order_id, position, account_id, sku, name, quantity, unit_price)
		SELECT $1, $3, account_id, sku, name, $5, price_amount FROM taken`
	totalSQL = `UPDATE orders SET total_amount = (SELECT sum(quantity * unit_price) FROM order_items WHERE order_id = $1) WHERE id = $1`
	// executedSQL tells the campaign whose key an order belongs to, as everyRequest does.
	executedSQL = `INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, resource, response_status, response_headers,
		response_body, completed_at, expires_at) VALUES ($1, $2, sha256(''), 'place_order', 'completed', '', 201, '{}', $3, now(), now() + interval '2 days')`
)

// newOutside makes the service's tables, and runs its worker until ctx ends.
func newOutside(ctx context.Context, pool *pgxpool.Pool) (func(http.Handler) http.Handler, error) {
	if _, err := pool.Exec(ctx, callsSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("make the table of calls: %w", err)
	}
	table := authority.WithTable(outsideTable, authority.DefaultScope)
	once := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{TTL: lifetime, FailureMode: idempotency.FailOpen, MaxWait: shopTimeout}),
		idempotency.WithScope(func(r *http.Request) string { return r.Header.Get("Authorization") }))
	return func(shop http.Handler) http.Handler {
		o := outside{pool, authority.New(pool, table, authority.WithLease(attemptLease)), shop}
		go o.resume(ctx)
		return arrival.Note(netip.MustParsePrefix("127.0.0.0/8"))(once.Handler(o))
	}, authority.Migrate(ctx, pool, table)
}

// resume goes on with calls whose clients do not come back.
func (o outside) resume(ctx context.Context) {
	for range time.Tick(resumeEvery) {
		if ctx.Err() != nil {
			return
		}
		_, _ = o.keys.Resume(ctx, o.provider(), 20) // what fails is due again
	}
}

// ServeHTTP implements [http.Handler].
func (o outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case idempotency.ClaimFrom(r.Context()) == nil:
		o.shop.ServeHTTP(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/orders":
		o.keys.Serve(w, r, "place_order", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) { return place(ctx, tx, r) })
	default:
		o.keys.ServeProvider(w, r, "call", func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) { return begin(ctx, tx, r) }, o.provider())
	}
}

// place makes an order and takes its items from the stock.
func place(ctx context.Context, tx *authority.Tx, r *http.Request) (authority.Outcome, error) {
	var account uuid.UUID
	var wanted struct {
		Customer uuid.UUID `json:"customer_id"`
		Items    []struct {
			SKU      string
			Quantity int64
		}
	}
	hash, id := sha256.Sum256([]byte(r.Header.Get("Authorization"))[len("Bearer "):]), uuid.Must(uuid.NewV7())
	err := errors.Join(json.NewDecoder(r.Body).Decode(&wanted), tx.QueryRow(ctx, accountSQL, hash[:]).Scan(&account))
	if err == nil {
		_, err = tx.Exec(ctx, orderSQL, id, account, wanted.Customer)
	}
	for i, item := range wanted.Items {
		var taken pgconn.CommandTag
		if err == nil {
			taken, err = tx.Exec(ctx, itemSQL, id, account, i, item.SKU, item.Quantity)
		}
		if err == nil && taken.RowsAffected() == 0 {
			return authority.RefusedForNow(authority.Answer{Status: http.StatusUnprocessableEntity, Body: []byte(`{"code":"unknown_product"}`)}), nil
		}
	}
	if err == nil {
		_, err = tx.Exec(ctx, totalSQL, id)
	}
	body := fmt.Appendf(nil, `{"id":%q,"status":"pending"}`, id)
	if err == nil {
		_, err = tx.Exec(ctx, executedSQL, account, r.Header.Get(headerKey)+verify.ExecutionMark+id.String(), body)
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.ConstraintName == "products_stock_not_negative" {
		return authority.Refused(authority.Answer{Status: http.StatusConflict, Body: []byte(`{"code":"out_of_stock"}`)}), nil
	}
	return authority.Done(authority.Answer{Status: http.StatusCreated, Header: map[string]string{"Content-Type": "application/json"}, Body: body}), err
}

// begin notes a call to the shop, under a key that names it.
func begin(ctx context.Context, tx *authority.Tx, r *http.Request) (authority.Outcome, error) {
	id := uuid.NewString()
	r.Header.Set(headerKey, r.Header.Get(headerKey)+verify.ExecutionMark+id)
	r.Header.Del(arrival.Header) // the call is made now
	request, err := httputil.DumpRequest(r, true)
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO outside_calls (id, request) VALUES ($1, $2)", id, request)
	}
	return authority.Begun(id), err
}

// provider is the shop, which executes a call once under its key, however often it is asked.
func (o outside) provider() authority.Provider {
	return authority.Provider{Timeout: shopTimeout, Ask: func(ctx context.Context, a authority.Attempt) (authority.Run, error) {
		var request []byte
		if err := o.pool.QueryRow(ctx, "SELECT request FROM outside_calls WHERE id = $1", a.ID).Scan(&request); err != nil {
			return nil, err
		}
		call, err := requestOf(request)
		if err != nil {
			return nil, err
		}
		answer := httptest.NewRecorder()
		o.shop.ServeHTTP(answer, call)
		if asksForRetry(answer.Code, answer.Header()) {
			return nil, fmt.Errorf("the shop answered %d", answer.Code)
		}
		kept := authority.Answer{Status: answer.Code, Body: answer.Body.Bytes(), Header: map[string]string{"Content-Type": answer.Header().Get("Content-Type")}}
		return func(context.Context, *authority.Tx) (authority.Outcome, error) {
			if answer.Code >= http.StatusBadRequest {
				return authority.Refused(kept), nil
			}
			return authority.Done(kept), nil
		}, nil
	}}
}
