package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/pages"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/psp"
	"github.com/oncepay/oncepay/internal/pspsim"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	// testTimeout bounds every wait of a test.
	testTimeout = time.Minute
	// pollInterval is how often a test asks for something that it waits for.
	pollInterval = 10 * time.Millisecond
	pspTimeout   = 10 * time.Second

	demo, other = "sk_test_demo", "sk_test_other"

	webhookSecret = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiB0aGUgdGVzdHM="
)

// shop is the whole system in one process: two replicas on real databases, and a provider.
type shop struct {
	t        *testing.T
	ctx      context.Context
	replicas [2]*httptest.Server
	http     *http.Client
	pool     *pgxpool.Pool // for looking behind the API
	redis    redis.UniversalClient
	pspURL   string

	mu     sync.Mutex
	checks []check
}

type check struct {
	route  string
	result idempotency.Result
}

// servers says where the databases are; empty ones are started.
type servers struct{ postgres, redis string }

func setup(t *testing.T, edit ...func(*httpapi.Config)) *shop {
	t.Helper()
	return setupOn(t, servers{testenv.Postgres(t), testenv.Redis(t)}, edit...)
}

func setupOn(t *testing.T, on servers, edit ...func(*httpapi.Config)) *shop {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	s := &shop{t: t, ctx: ctx, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: testTimeout}}
	t.Cleanup(s.http.CloseIdleConnections)
	s.pool, s.redis = s.openPostgres(on.postgres), s.openRedis(on.redis)
	require.NoError(t, postgres.Seed(ctx, s.pool))
	s.pspURL = s.startProvider()
	for i := range s.replicas {
		s.replicas[i] = s.startReplica("api-"+strconv.Itoa(i+1), on, edit...)
	}
	return s
}

func (s *shop) openPostgres(url string) *pgxpool.Pool {
	s.t.Helper()
	pool, err := postgres.Open(context.Background(), postgres.Config{URL: url, MaxConns: 8})
	require.NoError(s.t, err)
	s.t.Cleanup(pool.Close)
	return pool
}

// openRedis opens a client that a busy machine does not time out: a megabyte may take longer than
// a service would wait. Redis that is stopped refuses connections at once.
func (s *shop) openRedis(url string) redis.UniversalClient {
	s.t.Helper()
	o, err := redisstore.Options(url)
	require.NoError(s.t, err)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = testTimeout, testTimeout, testTimeout, testTimeout
	c := redisstore.NewClient(o)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *shop) startProvider() string {
	s.t.Helper()
	provider, err := pspsim.New(filepath.Join(s.t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(s.t, err)
	server := httptest.NewServer(provider)
	s.t.Cleanup(func() {
		server.Close()
		require.NoError(s.t, provider.Close())
	})
	return server.URL
}

// startReplica wires a replica as internal/app does, with connections of its own.
func (s *shop) startReplica(name string, on servers, edit ...func(*httpapi.Config)) *httptest.Server {
	s.t.Helper()
	server, err := httpapi.New(s.config(name, on, edit...))
	require.NoError(s.t, err)
	return s.listen(server)
}

func (s *shop) config(name string, on servers, edit ...func(*httpapi.Config)) httpapi.Config {
	s.t.Helper()
	pool, redisClient := s.openPostgres(on.postgres), s.openRedis(on.redis)
	gateway := psp.NewGateway(s.pspURL, pspTimeout)
	s.t.Cleanup(gateway.Close)
	store := redisstore.New(redisClient)
	s.t.Cleanup(func() { _ = store.Close() })
	shopStore := postgres.NewStore(pool, postgres.Options{})
	apiKeys := access.NewRing(shopStore, background.Schedule{}) // not started: only requests look for changes
	require.NoError(s.t, apiKeys.Refresh(s.ctx))
	cfg := httpapi.Config{
		Service: checkout.NewService(shopStore, gateway), APIKeys: apiKeys,
		Store: store, Logger: slog.New(slog.DiscardHandler), Replica: name,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		RateLimit:      100_000, AuthCacheTTL: time.Minute, Lease: 15 * time.Second,
		PaymentTTL: 48 * time.Hour, OrderTTL: 24 * time.Hour, TombstoneTTL: 90 * 24 * time.Hour, PaymentDeadline: time.Minute, OrderDeadline: 30 * time.Second,
		WebhookSecret: webhookSecret, Observe: s.observe,
	}
	for _, change := range edit {
		change(&cfg)
	}
	return cfg
}

func (s *shop) listen(server *httpapi.Server) *httptest.Server {
	listening := httptest.NewUnstartedServer(server)
	listening.Config.ConnContext = arrival.WithConn
	listening.Listener = httpapi.Listen(listening.Listener)
	listening.Start()
	s.t.Cleanup(func() {
		listening.Close()
		server.Wait()
	})
	return listening
}

func (s *shop) observe(_ *http.Request, route string, c idempotency.Check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = append(s.checks, check{route, c.Result})
}

// observed forgets, too.
func (s *shop) observed() []check {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.checks
	s.checks = nil
	return seen
}

// request is one request, as the first demo account unless key says otherwise.
type request struct {
	method, path, body string
	key                string // Idempotency-Key; empty: none
	replica            int
	edit               func(*http.Request)
}

// reply is what came back, read to its end.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (s *shop) do(r request) reply {
	s.t.Helper()
	answer, err := s.try(s.ctx, r)
	require.NoError(s.t, err)
	return answer
}

func (s *shop) try(ctx context.Context, r request) (reply, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.replicas[r.replica].URL+r.path, body)
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+demo)
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set(idempotency.HeaderKey, r.key)
	}
	if r.edit != nil {
		r.edit(req)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return reply{s.t, res.StatusCode, res.Header, string(text)}, err
}

// as makes a request another account's.
func as(apiKey string) func(*http.Request) { return with("Authorization", "Bearer "+apiKey) }

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

func without(header string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(header) }
}

// post sends a keyed POST to the first replica and wants this status.
func (s *shop) post(path, key, body string, status int) reply {
	s.t.Helper()
	answer := s.do(request{method: "POST", path: path, key: key, body: body})
	require.Equal(s.t, status, answer.status, answer.body)
	return answer
}

func (s *shop) get(path string) reply {
	s.t.Helper()
	answer := s.do(request{method: "GET", path: path})
	require.Equal(s.t, http.StatusOK, answer.status, answer.body)
	return answer
}

// decode reads a body as one of the API's types.
func decode[T any](r reply) (value T) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.body), &value), r.body)
	return value
}

// problem checks that the reply is one, and of the one shape.
func (r reply) problem(status int, code string) api.Problem {
	r.t.Helper()
	require.Equal(r.t, status, r.status, r.body)
	require.Equal(r.t, "application/problem+json", r.header.Get("Content-Type"))
	var raw map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(r.body), &raw))
	delete(raw, "resource") // which only some have
	require.Len(r.t, raw, 7, "type, title, status, detail, code, error, request_id")
	p := decode[api.Problem](r)
	require.Equal(r.t, code, p.Code, r.body)
	require.Equal(r.t, "/problems/"+code, p.Type)
	require.Equal(r.t, http.StatusText(status), p.Title)
	require.Equal(r.t, status, p.Status)
	require.NotEmpty(r.t, p.Detail)
	require.NotEmpty(r.t, p.Error)
	require.NotEmpty(r.t, p.RequestID)
	require.Equal(r.t, status, pages.Status(code), "on the page of %s", code)
	return p
}

func (r reply) replayed() bool { return r.header.Get(idempotency.HeaderReplay) == "true" }

// kept are the headers that a replay must repeat.
func (r reply) kept() [3]string {
	return [3]string{r.header.Get("Content-Type"), r.header.Get("Location"), r.header.Get("ETag")}
}

// requireSame says that two replies are one answer.
func requireSame(t *testing.T, first, second reply) {
	t.Helper()
	require.Equal(t, first.status, second.status)
	require.Equal(t, first.body, second.body)
	require.Equal(t, first.kept(), second.kept())
}

func newKey() string { return uuid.NewString() }

// customer makes one by the generated client.
func (s *shop) customer() api.Customer {
	s.t.Helper()
	made, err := s.client().CreateCustomerWithResponse(s.ctx, &client.CreateCustomerParams{IdempotencyKey: newKey()},
		client.CustomerCreate{Name: "Ada", Email: uuid.NewString() + "@example.com"})
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusCreated, made.StatusCode(), string(made.Body))
	return decode[api.Customer](reply{t: s.t, body: string(made.Body)})
}

// client is for those who want an answer, and repeats requests; do makes one attempt.
func (s *shop) client() *client.ClientWithResponses {
	s.t.Helper()
	retrying := &http.Client{Transport: &transport.Transport{Base: s.http.Transport}, Timeout: testTimeout}
	c, err := client.NewClientWithResponses(s.replicas[0].URL+"/v1", client.WithHTTPClient(retrying),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			as(demo)(r)
			return nil
		}))
	require.NoError(s.t, err)
	return c
}

func orderOf(customer uuid.UUID, sku string, quantity int) string {
	return `{"customer_id":"` + customer.String() + `","items":[{"sku":"` + sku + `","quantity":` + strconv.Itoa(quantity) + `}]}`
}

func (s *shop) order(customer uuid.UUID) api.Order {
	s.t.Helper()
	return decode[api.Order](s.post("/v1/orders", newKey(), orderOf(customer, "tee-black", 1), http.StatusCreated))
}

func card(token string) string { return `{"method":{"type":"card","token":"` + token + `"}}` }

func payments(order uuid.UUID) string { return "/v1/orders/" + order.String() + "/payments" }

func (s *shop) pay(order uuid.UUID) api.Payment {
	s.t.Helper()
	return decode[api.Payment](s.post(payments(order), newKey(), card("tok_visa"), http.StatusCreated))
}

// charges are what the provider really charged for an order.
func (s *shop) charges(order uuid.UUID) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.pspURL+"/v1/charges?reference="+order.String(), http.NoBody)
	require.NoError(s.t, err)
	res, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = res.Body.Close() }()
	var list struct {
		Data []struct {
			Status string `json:"status"`
		} `json:"data"`
	}
	require.NoError(s.t, json.NewDecoder(res.Body).Decode(&list))
	succeeded := 0
	for _, charge := range list.Data {
		if charge.Status == "succeeded" {
			succeeded++
		}
	}
	return succeeded
}

// value reads one value by SQL.
func value[T any](s *shop, sql string, args ...any) (v T) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.ctx, sql, args...).Scan(&v))
	return v
}

// footprint is everything that a request could leave behind.
func (s *shop) footprint() string {
	s.t.Helper()
	keys, err := s.redis.DBSize(s.ctx).Result()
	require.NoError(s.t, err)
	return value[string](s, effects+" || ' keys ' || (SELECT count(*) FROM idempotency_keys WHERE status <> 'refused')") + " redis " + strconv.FormatInt(keys, 10)
}

// effect is the same without the keys.
func (s *shop) effect() string { s.t.Helper(); return value[string](s, effects) }

const effects = `SELECT concat_ws(' ',
	'products', (SELECT concat(count(*), '/', sum(stock), '/', max(updated_at)) FROM products),
	'customers', (SELECT concat(count(*), '/', max(updated_at)) FROM customers), 'wallets', (SELECT sum(balance) FROM wallets),
	'orders', (SELECT concat(count(*), '/', max(updated_at)) FROM orders), 'items', (SELECT count(*) FROM order_items),
	'payments', (SELECT concat(count(*), '/', max(updated_at), '/', sum(refunded)) FROM payments),
	'refunds', (SELECT count(*) FROM refunds), 'top_ups', (SELECT count(*) FROM top_ups),
	'ledger', (SELECT count(*) FROM ledger_entries), 'outbox', (SELECT count(*) FROM outbox))`

// eventually waits for a condition of the system's.
func (s *shop) eventually(met func() bool, what string) {
	s.t.Helper()
	require.Eventually(s.t, met, testTimeout, pollInterval, what)
}
