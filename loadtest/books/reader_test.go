package books_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/books"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// account is the API key of the tests.
const account = "sk_test_demo"

// readTimeout bounds a test's waits.
const readTimeout = time.Minute

// id makes the UUID that stands for a name of one hexadecimal digit.
func id(digit string) string { return "00000000-0000-4000-8000-00000000000" + digit }

// shelves is one of everything: an order of a paid with a card and partly refunded, a top-up, keys,
// events and their effects.
const shelves = `
INSERT INTO accounts (id, name) VALUES (:1, 'ours'), (:2, 'not ours');
INSERT INTO products (account_id, sku, name, price_amount, price_currency, stock) VALUES
	(:1, 'tee', 'Tee', 100, 'USD', 8), (:1, 'hat', 'Hat', 100, 'USD', 3), (:2, 'tee', 'Tee', 100, 'USD', 5);
INSERT INTO customers (id, account_id, name, email, created_at, updated_at) VALUES (:3, :1, 'Ada', 'a@x', now(), now()), (:4, :1, 'Bob', 'b@x', now(), now());
INSERT INTO wallets (customer_id, account_id, balance, currency, updated_at) VALUES (:3, :1, 70, 'USD', now());
INSERT INTO top_ups (id, account_id, customer_id, amount, currency, balance, created_at) VALUES (:5, :1, :3, 70, 'USD', 70, now());
INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
	VALUES (:6, :1, :3, 'partially_refunded', 300, 'USD', now(), now(), now());
INSERT INTO order_items (order_id, position, account_id, sku, name, quantity, unit_price) VALUES
	(:6, 0, :1, 'tee', 'Tee', 2, 100), (:6, 1, :1, 'hat', 'Hat', 1, 100);
INSERT INTO payments (id, account_id, order_id, customer_id, method, token, amount, currency, refunded, status, decline_code, provider_id,
	created_at, updated_at) VALUES (:7, :1, :6, :3, 'card', 'tok_visa', 300, 'USD', 50, 'succeeded', '', 'ch_1', now(), now());
INSERT INTO refunds (id, account_id, payment_id, order_id, amount, currency, status, decline_code, provider_id, charge_id, created_at, updated_at)
	VALUES (:8, :1, :7, :6, 50, 'USD', 'processing', '', '', 'ch_1', now(), now());
INSERT INTO ledger_transactions (id, account_id, kind, subject) VALUES (:9, :1, 'payment', :7);
INSERT INTO ledger_entries (transaction_id, position, ledger_account, amount, currency) VALUES (:9, 0, 'provider', 300, 'USD'), (:9, 1, 'sales', -300, 'USD');
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, response_status, response_headers, response_body, completed_at, expires_at)
	VALUES (:1, 'done', sha256('x'), 'place_order', 'completed', 201, '{}', convert_to('{"id":"' || :6 || '"}', 'UTF8'), now(), now()),
	       (:1, 'open', sha256('x'), 'pay', 'in_progress', NULL, NULL, NULL, NULL, now());
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data) VALUES
	(:a, :1, 'order.placed', 'order', :6, '{"order_id":"o"}'), (:b, :1, 'payment.succeeded', 'order', :6, '{"payment_id":"p","order_id":"o"}');
UPDATE outbox_cursor SET position = 1;
INSERT INTO order_confirmations (account_id, order_id) VALUES (:1, :6), (:1, :6);
INSERT INTO warehouse_notices (account_id, order_id) VALUES (:1, :6);
`

func fill(ctx context.Context, t *testing.T, url, apiKey string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	sql := shelves
	for _, digit := range "123456789ab" {
		sql = strings.ReplaceAll(sql, ":"+string(digit), "'"+id(string(digit))+"'")
	}
	_, err = conn.Exec(ctx, sql)
	require.NoError(t, err)
	hash := sha256.Sum256([]byte(apiKey))
	_, err = conn.Exec(ctx, "INSERT INTO api_keys (hash, account_id) VALUES ($1, $2)", hash[:], id("1"))
	require.NoError(t, err)
}

// publish puts an event into the stream, and a key in progress and an answered one beside it.
func publish(ctx context.Context, t *testing.T, url string) (addr string) {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	require.NoError(t, client.XAdd(ctx, &redis.XAddArgs{Stream: "oncepay:events", Values: map[string]any{"event_id": id("a")}}).Err())

	records, err := redisstore.Open(url)
	require.NoError(t, err)
	store := redisstore.New(records)
	defer func() { require.NoError(t, store.Close()); _ = records.Close() }()
	for _, key := range []string{"open", "done"} {
		record := idempotency.Record{Scope: "s", Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(), CreatedAt: time.Now()}
		found, err := store.Acquire(ctx, record, readTimeout)
		require.NoError(t, err)
		require.Nil(t, found)
		if key == "done" {
			record.Status = idempotency.StatusCompleted
			record.Response = idempotency.Response{StatusCode: 201, Body: []byte(`{"status":"InProgress"}`)} // which is not the record's
			require.NoError(t, store.Complete(ctx, record, readTimeout))
		}
	}
	return options.Addr
}

func TestReader_ReadsTheBooks(t *testing.T) {
	t.Parallel()
	database, cache := testenv.Postgres(t), testenv.RedisServer(t).URL // whose start takes as long as it takes; the reader knows database 0 alone
	ctx, cancel := context.WithTimeout(t.Context(), readTimeout)
	defer cancel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"w","status":"declined"},{"id":"x","reference":%q,"status":"succeeded","amount":300}]}`, r.URL.Path)
	}))
	defer provider.Close()
	defer http.DefaultClient.CloseIdleConnections()
	r := books.Reader{DatabaseURL: database, ProviderURL: provider.URL, APIKeys: []string{account},
		Opening: map[string]map[string]int64{account: {"tee": 10}}, Lost: []books.Stream{{IDs: []string{"lost"}}}, Since: time.Unix(7, 0)}
	fill(ctx, t, r.DatabaseURL, account)
	r.RedisAddr = publish(ctx, t, cache)

	b, err := r.Read(ctx)
	require.NoError(t, err)
	body := sha256.Sum256([]byte(`{"id":"` + id("6") + `"}`))
	none := sha256.Sum256(nil)
	require.ElementsMatch(t, []books.KeyRow{
		{KeyID: books.KeyID{Account: account, Key: "done"}, Operation: "place_order", Status: "completed", ResponseStatus: 201,
			Body: fmt.Sprintf("%x", body), Resource: id("6")},
		{KeyID: books.KeyID{Account: account, Key: "open"}, Operation: "pay", Status: "in_progress", Body: fmt.Sprintf("%x", none)},
	}, b.Keys)
	require.Len(t, b.Orders, 1)
	require.Equal(t, []books.Order{{ID: id("6"), Account: id("1"), Customer: id("3"), Status: "partially_refunded", Total: 300,
		Items: map[string]int64{"tee": 2, "hat": 1}}}, b.Orders)
	require.Equal(t, []books.Payment{{ID: id("7"), Order: id("6"), Customer: id("3"), Method: "card", Status: "succeeded", Amount: 300, Refunded: 50}}, b.Payments)
	require.Equal(t, []books.Refund{{ID: id("8"), Payment: id("7"), Order: id("6"), Status: "processing", Amount: 50}}, b.Refunds)
	require.Equal(t, []books.TopUp{{ID: id("5"), Customer: id("3"), Amount: 70}}, b.TopUps)
	require.Equal(t, map[string]int64{id("3"): 70, id("4"): 0}, b.Wallets, "a customer without a wallet has no money")
	require.Equal(t, []books.Transaction{{ID: id("9"), Subject: id("7"), Sum: 0, Volume: 300}}, b.Transactions)
	require.Equal(t, []books.Product{{Account: id("1"), SKU: "tee", Opening: 10, Stock: 8, Version: 1}, {Account: id("1"), SKU: "hat", Stock: 3, Version: 1, Restocked: true}},
		b.Products, "what the campaign sells, and what it restocks")
	require.Equal(t, map[string]string{id("3"): "Ada", id("4"): "Bob"}, b.Customers)
	require.Len(t, b.Events, 2)
	for i, want := range []books.Event{{ID: id("a"), Subject: id("6"), Type: "order.placed", Published: true, About: "o"},
		{ID: id("b"), Subject: id("6"), Type: "payment.succeeded", About: "p"}} {
		require.False(t, b.Events[i].Created.IsZero())
		b.Events[i].Created = time.Time{}
		require.Equal(t, want, b.Events[i])
	}
	require.Equal(t, []books.Stream{{IDs: []string{"lost"}}, {Since: time.Unix(7, 0), IDs: []string{id("a")}}}, b.Streams)
	require.Equal(t, map[string]int{id("6"): 2}, b.Confirmations)
	require.Equal(t, map[string]int{id("6"): 1}, b.WarehouseNotices)
	require.Equal(t, []books.Charge{{ID: "w", Status: "declined"}, {ID: "x", Reference: "/v1/charges", Status: "succeeded", Amount: 300}}, b.Charges)
	require.Equal(t, []books.Charge{{ID: "w", Status: "declined"}, {ID: "x", Reference: "/v1/refunds", Status: "succeeded", Amount: 300}}, b.ProviderRefunds)
	require.Equal(t, []string{"idempotency:s:open"}, b.Pending)
}

func TestReader_ReadsTheRecordsOfThisTimeline(t *testing.T) {
	t.Parallel()
	database, cache := testenv.Postgres(t), testenv.RedisServer(t).URL
	ctx, cancel := context.WithTimeout(t.Context(), readTimeout)
	defer cancel()
	fill(ctx, t, database, account)
	r := books.Reader{DatabaseURL: database, RedisAddr: publish(ctx, t, cache)}
	all, err := r.Records(ctx)
	require.NoError(t, err)
	require.Empty(t, all, "no record of another timeline is believed")

	conn, err := pgx.Connect(ctx, database)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, `INSERT INTO timelines (system, number, published, begun_at) VALUES (255, 9, 0, now() + interval '1 hour');
		UPDATE idempotency_keys SET expires_at = now() + interval '1 hour' WHERE key = 'done'`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	client := redis.NewClient(&redis.Options{Addr: r.RedisAddr})
	defer func() { _ = client.Close() }()
	const timeline = "idempotency:000000ff.9:"
	for _, name := range []string{timeline + id("1") + ":done", timeline + id("1") + ":gone"} {
		require.NoError(t, client.Set(ctx, name, "{}\nbody", 30*time.Minute).Err())
	}
	all, err = r.Records(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, record := range all {
		require.WithinDuration(t, time.Now().Add(30*time.Minute), record.Expires, time.Minute)
		require.Equal(t, record.Name == timeline+id("1")+":done", record.HasRow)
		if record.HasRow {
			require.WithinDuration(t, time.Now().Add(time.Hour), record.RowExpires, time.Minute)
		}
	}
}

// What can't be read is an error: empty books would be good ones.
func TestReader_FailsRatherThanReadNothing(t *testing.T) {
	t.Parallel()
	database, cache := testenv.Postgres(t), testenv.RedisServer(t).URL
	ctx, cancel := context.WithTimeout(t.Context(), readTimeout)
	defer cancel()
	status := http.StatusOK
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"data":[]}`)
	}))
	defer provider.Close()
	defer http.DefaultClient.CloseIdleConnections()
	whole := books.Reader{DatabaseURL: database, ProviderURL: provider.URL, APIKeys: []string{account}}
	fill(ctx, t, whole.DatabaseURL, account)
	whole.RedisAddr = publish(ctx, t, cache)
	_, err := whole.Read(ctx)
	require.NoError(t, err)

	for want, spoil := range map[string]func(*books.Reader){
		"open the books":      func(r *books.Reader) { r.DatabaseURL = "postgres://127.0.0.1:1/x" },
		"account of":          func(r *books.Reader) { r.APIKeys = []string{"unknown"} },
		"list the provider's": func(r *books.Reader) { r.ProviderURL = "http://127.0.0.1:1" },
		"read the stream":     func(r *books.Reader) { r.RedisAddr = "127.0.0.1:1" },
		"Service Unavailable": func(*books.Reader) { status = http.StatusServiceUnavailable },
	} {
		status = http.StatusOK
		r := whole
		spoil(&r)
		_, err := r.Read(ctx)
		require.ErrorContains(t, err, want)
	}
}
