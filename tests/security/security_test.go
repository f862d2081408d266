// Package security_test attacks a whole stack, while an honest account works: what it sees is what
// counts. `task test:security` runs it.
package security_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/slowreader"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
)

const (
	// upTimeout bounds the whole test: programs may have to be compiled.
	upTimeout = 8 * time.Minute
	// manyKeys are those that a stranger's key is looked for among.
	manyKeys = 100_000
	// pace is how often the honest account buys, so that it stays within its own budget.
	pace = 200 * time.Millisecond
	// leastPaid is how many orders are paid during an attack at least. If the machine is slow, the
	// attack lasts longer.
	leastPaid = 4
	// leastBudget is what an account may keep at each replica, and budgetPerSecond what it may if
	// the attack lasts: twice what the honest account needs.
	leastBudget, budgetPerSecond = 200, 20

	greedy, honest, unseen = "sk_test_demo", "sk_test_other", "sk_test_unseen"
	cardNumber             = "4242424242424242"
)

var attackFor = flag.Duration("attack", 6*time.Second, "how long each attack lasts")

// budget is what an account may keep at each replica. Nobody who works at an honest pace needs it.
func budget() int { return max(leastBudget, int(attackFor.Seconds())*budgetPerSecond) }

// town is a stack, with an honest account in it.
type town struct {
	*stack.Stack
	t      *testing.T
	ctx    context.Context
	client *http.Client
}

func setup(t *testing.T) *town {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	t.Cleanup(cancel)
	s := stacktest.Up(ctx, t, stack.Options{Dir: ".stack-security", Driver: stack.Native, Direct: true,
		Env: []string{fmt.Sprintf("IDEMPOTENCY_ACCOUNT_KEYS=%d", budget()), "LOG_LEVEL=debug"}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	return &town{s, t, ctx, client}
}

// send sends a request to a service, with a new key, and returns the answer's status and body.
func (s *town) send(service, apiKey, method, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(s.ctx, method, "http://"+s.Addr(service)+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"},
		"Idempotency-Key": {"key-" + uuid.NewString()}}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// create is send of an account that expects 201. It returns the ID.
func (s *town) create(apiKey, path, body string) string {
	s.t.Helper()
	status, text, err := s.send(stack.Nginx, apiKey, http.MethodPost, path, body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusCreated, status, text)
	var created struct{ ID string }
	require.NoError(s.t, json.Unmarshal([]byte(text), &created))
	return created.ID
}

func (s *town) customer(apiKey string) string {
	return s.create(apiKey, "/v1/customers", fmt.Sprintf(`{"name":"Ada","email":"%s@example.com"}`, uuid.NewString()))
}

func orderOf(customer string) string {
	return fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":"sticker-pack","quantity":1}]}`, customer)
}

// during has buyers order and pay in turn while an attack lasts, by as many clients as it takes,
// and at least leastPaid times. Nothing that they send may fail.
func (s *town) during(buyers []string, clients int, attack func()) {
	s.t.Helper()
	until := time.Now().Add(*attackFor)
	ctx, end := context.WithCancel(s.ctx)
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer end()
	for range clients {
		attackers.Go(func() {
			for ctx.Err() == nil {
				attack()
			}
		})
	}
	paid, customers := 0, map[string]string{}
	for pace := time.Tick(pace); paid < leastPaid || time.Now().Before(until); paid++ {
		<-pace
		buyer := buyers[paid%len(buyers)]
		if customers[buyer] == "" {
			customers[buyer] = s.customer(buyer)
		}
		order := s.create(buyer, "/v1/orders", orderOf(customers[buyer]))
		s.create(buyer, "/v1/orders/"+order+"/payments", `{"method":{"type":"card","token":"tok_visa"}}`)
	}
	s.t.Logf("%d orders placed and paid", paid)
}

// addKeys adds many API keys, and the account of one that has products and was never seen. It
// returns when both replicas know the keys.
func (s *town) addKeys() {
	conn, err := pgx.Connect(s.ctx, stack.PostgresURL(s.PostgresPrimary()))
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, conn.Close(s.ctx)) }()
	_, err = conn.Exec(s.ctx, `
		WITH account AS (INSERT INTO accounts (id, name) VALUES (gen_random_uuid(), 'Unseen') RETURNING id),
		product AS (INSERT INTO products (account_id, sku, name, price_amount, price_currency, stock)
			SELECT account.id, sku, p.name, price_amount, price_currency, stock FROM account, products p
			WHERE account_id = '00000000-0000-7000-8000-000000000002'),
		key AS (INSERT INTO api_keys (hash, account_id) SELECT sha256($1), id FROM account)
		INSERT INTO api_keys (hash, account_id)
		SELECT sha256(n::text::bytea), '00000000-0000-7000-8000-000000000002' FROM generate_series(1, $2) n`,
		[]byte(unseen), manyKeys)
	require.NoError(s.t, err)
	for _, replica := range []string{stack.API1, stack.API2} {
		require.Eventually(s.t, func() bool {
			status, _, err := s.send(replica, strconv.Itoa(manyKeys), http.MethodGet, "/v1/products", "")
			return err == nil && status == http.StatusOK
		}, time.Minute, pace)
	}
}

func TestStack_InHostileHands(t *testing.T) {
	t.Parallel()
	s := setup(t)
	t.Run("slow readers", s.attackBySlowReaders) // first: a greedy account uses its budget up
	t.Run("a greedy account", s.attackByAccount)
	t.Run("a flood of strangers", s.attackByStrangers)
	t.Run("slow senders", s.attackBySlowSenders)
	t.Run("a card number everywhere", s.lookForCardNumbers)
}

// attackByAccount: one account places orders and looks things up as quickly as it can.
func (s *town) attackByAccount(t *testing.T) {
	s.t = t
	customer := s.customer(greedy)
	var refused atomic.Int64
	for refused.Load() == 0 { // on a busy machine a budget lasts longer than an attack
		s.during([]string{honest}, 32, func() {
			method, path, body := http.MethodPost, "/v1/orders", orderOf(customer)
			if rand.IntN(2) == 0 {
				method, path, body = http.MethodGet, "/v1/customers/"+customer, ""
			}
			_, text, err := s.send(stack.Nginx, greedy, method, path, body)
			if err == nil && strings.Contains(text, `"budget_used_up"`) {
				refused.Add(1)
			}
		})
		require.NoError(t, s.ctx.Err(), "its budget is not used up")
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr(stack.Redis)})
	defer func() { _ = client.Close() }()
	kept, err := client.Keys(s.ctx, "idempotency:*:00000000-0000-7000-8000-000000000001:*").Result()
	require.NoError(t, err)
	require.LessOrEqual(t, len(kept), 2*(budget()+32), "at both replicas, and what was under way")
}

// attackByStrangers: unknown API keys, a new one for each request, at nginx and past it, while an
// account buys that was never seen before.
func (s *town) attackByStrangers(t *testing.T) {
	s.t = t
	s.addKeys()
	var unexpected atomic.Int64
	s.during([]string{honest, unseen}, 32, func() {
		service := []string{stack.Nginx, stack.API1, stack.API2}[rand.IntN(3)]
		status, _, err := s.send(service, "sk_live_"+uuid.NewString(), http.MethodGet, "/v1/orders", "")
		if err == nil && status != http.StatusUnauthorized && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
			unexpected.Add(1)
		}
	})
	require.Zero(t, unexpected.Load())
}

// attackBySlowSenders: 2,000 clients send a header or a body, a byte a second.
func (s *town) attackBySlowSenders(t *testing.T) {
	s.t = t
	const header = "POST /v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + honest + "\r\nContent-Type: application/json\r\n"
	var conns []net.Conn
	open := func(n int, service, begin string) {
		for range n {
			conn, err := (&net.Dialer{}).DialContext(s.ctx, "tcp", s.Addr(service))
			require.NoError(t, err)
			_, err = io.WriteString(conn, begin)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
	}
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	open(1000, stack.Nginx, header)
	open(300, stack.Nginx, header+"Content-Length: 1000\r\n\r\n{") // of the honest account itself; nginx lets 384 through
	open(600, stack.API1, header)
	open(100, stack.API1, header+"Idempotency-Key: slow\r\nContent-Length: 1000\r\n\r\n{")
	s.during([]string{honest}, 1, func() {
		for _, conn := range conns {
			_, _ = io.WriteString(conn, " ") // closed, if its time is up
		}
		time.Sleep(time.Second)
	})
}

// attackBySlowReaders has strangers ask for the largest page, and an account for a large list, at
// nginx and past it. They read nothing, and ask again when they are cut off.
func (s *town) attackBySlowReaders(t *testing.T) {
	s.t = t
	s.placeLongOrders()
	type request struct{ from, service, path, apiKey string }
	requests := slices.Concat(
		slices.Repeat([]request{
			{"127.0.0.2", stack.Nginx, "/docs/swagger-ui-bundle.js", ""},
			{"127.0.0.3", stack.Nginx, "/docs/swagger-ui-bundle.js", ""},
		}, 350),
		slices.Repeat([]request{{"127.0.0.2", stack.Nginx, "/v1/orders?limit=100", greedy}}, 100),
		slices.Repeat([]request{{"127.0.0.2", stack.API1, "/v1/orders?limit=100", greedy}}, 50))
	conns := make([]net.Conn, len(requests))
	ask := func(n int) (err error) {
		r := requests[n]
		conns[n], err = slowreader.Ask(s.ctx, r.from, s.Addr(r.service), r.path, r.apiKey)
		return err
	}
	for n := range requests {
		require.NoError(t, ask(n))
	}
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	again, unserved := 0, map[int]int{}
	s.during([]string{honest}, 1, func() {
		for range 20 {
			if conns[again] != nil {
				_ = conns[again].Close()
			}
			_ = ask(again) // nil, if it is not let in
			again = (again + 1) % len(conns)
		}
		for _, path := range []string{"/v1/orders", "/v1/products", "/v1/orders?limit=1"} {
			if status, _, err := s.send(stack.Nginx, honest, http.MethodGet, path, ""); err != nil || status != http.StatusOK {
				unserved[status]++
			}
		}
		time.Sleep(pace)
	})
	require.Empty(t, unserved, "reads of the honest account, by status")
}

// placeLongOrders has the greedy account own a list of a megabyte or more.
func (s *town) placeLongOrders() {
	const products, orders = 50, 30
	var items []string
	for n := range products {
		sku := fmt.Sprintf("long-%d", n)
		status, text, err := s.send(stack.Nginx, greedy, http.MethodPut, "/v1/products/"+sku,
			fmt.Sprintf(`{"name":%q,"price":{"amount":1,"currency":"USD"},"stock":1000}`, strings.Repeat("界", 200)))
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusCreated, status, text)
		items = append(items, fmt.Sprintf(`{"sku":%q,"quantity":1}`, sku))
	}
	order := fmt.Sprintf(`{"customer_id":%q,"items":[%s]}`, s.customer(greedy), strings.Join(items, ","))
	for range orders {
		s.create(greedy, "/v1/orders", order)
	}
}

// lookForCardNumbers in everything that any service has logged, after one was sent everywhere.
func (s *town) lookForCardNumbers(t *testing.T) {
	for _, service := range []string{stack.Nginx, stack.API1, stack.API2} {
		for _, r := range []struct{ method, path, body, header, value string }{
			{"GET", "/v1/products/" + cardNumber, "", "", ""},
			{"GET", "/v1/orders?cursor=" + cardNumber, "", "", ""},
			{"GET", "/v1/idempotency-keys/" + cardNumber, "", "", ""},
			{"GET", "/nothing/" + cardNumber, "", "", ""},
			{"POST", "/v1/customers", `{"name":"` + cardNumber + `","email":"a@example.com"}`, "", ""},
			{"POST", "/v1/orders", `{"` + cardNumber + `":1}`, "", ""},
			{"POST", "/v1/customers", `{}`, "Idempotency-Key", cardNumber},
			{"GET", "/v1/products", "", "Authorization", "Bearer " + cardNumber},
			{"GET", "/v1/products", "", "X-Request-ID", cardNumber},
			{"GET", "/v1/products", "", "User-Agent", cardNumber},
			{"GET", "/v1/products", "", "X-Forwarded-For", cardNumber},
			{"GET", "/v1/products", "", "Traceparent", cardNumber},
		} {
			request, err := http.NewRequestWithContext(s.ctx, r.method, "http://"+s.Addr(service)+r.path, strings.NewReader(r.body))
			require.NoError(t, err)
			request.Header = http.Header{"Authorization": {"Bearer " + honest}, "Content-Type": {"application/json"}, "Idempotency-Key": {"card"}}
			if r.header != "" {
				request.Header.Set(r.header, r.value)
			}
			answer, err := s.client.Do(request)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
		}
	}
	var logs bytes.Buffer
	require.NoError(t, s.Logs(s.ctx, &logs, nil, false))
	require.Contains(t, logs.String(), `"event":"http_request"`)
	for line := range strings.Lines(logs.String()) {
		require.NotContains(t, line, cardNumber)
	}
}
