package httpapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/slowreader"
)

// crowded is a shop whose first replica has a limiter.
type crowded struct {
	*shop
	limiter *admission.Limiter
	account uuid.UUID // of the requests
}

func setupCrowded(t *testing.T, edit ...func(*httpapi.Config)) *crowded {
	t.Helper()
	limiter := admission.New(10)
	s := setup(t, append(edit, func(c *httpapi.Config) {
		if c.Replica == "api-1" {
			c.Admission = limiter
		}
	})...)
	account := value[uuid.UUID](s, "SELECT account_id FROM api_keys WHERE hash = sha256($1)", []byte(demo))
	return &crowded{s, limiter, account}
}

// fill takes all slots until the test ends, or the function is called.
func (s *crowded) fill() (free func()) {
	s.t.Helper()
	unknown := func(context.Context) admission.Key { return admission.Unknown }
	var slots []*admission.Slot
	for slot := s.enter(unknown); slot != nil; slot = s.enter(unknown) {
		slots = append(slots, slot)
	}
	require.NotEmpty(s.t, slots)
	return func() {
		for _, slot := range slots {
			slot.Leave()
		}
	}
}

func (s *crowded) enter(look func(context.Context) admission.Key) *admission.Slot {
	return s.limiter.Enter(s.ctx, admission.Change, s.account, false, look)
}

func TestOverload_LeavesNothingOfWhatIsTurnedAway(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	customer := s.customer().ID
	order, key := orderOf(customer, "tee-black", 1), newKey()
	free := s.fill()
	before := s.footprint()
	for _, r := range []request{
		{method: "POST", path: "/v1/orders", key: key, body: order},
		{method: "POST", path: payments(uuid.New()), key: newKey(), body: card("tok_visa")},
		{method: "GET", path: "/v1/orders"},
	} {
		answer := s.do(r)
		answer.problem(http.StatusServiceUnavailable, "overloaded")
		require.Equal(t, "1", answer.header.Get("Retry-After"))
	}
	require.Equal(t, before, s.footprint())
	require.EqualValues(t, 1, s.limiter.Stats().TurnedAway[admission.Money])

	free()
	require.False(t, s.post("/v1/orders", key, order, http.StatusCreated).replayed(), "the same key is free")
}

func TestOverload_ReplaysWhatWasAnswered(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	order, key := orderOf(s.customer().ID, "tee-black", 1), newKey()
	first := s.post("/v1/orders", key, order, http.StatusCreated)
	s.fill()
	again := s.post("/v1/orders", key, order, http.StatusCreated)
	require.True(t, again.replayed())
	requireSame(t, first, again)
}

// heldStore counts look-ups, and answers them once it is released.
type heldStore struct {
	idempotency.Store
	lookups atomic.Int64
	release chan struct{}
}

func (s *heldStore) Lookup(context.Context, string, string) (*idempotency.Record, error) {
	s.lookups.Add(1)
	<-s.release
	return nil, idempotency.ErrUnavailable
}

// TestOverload_BoundsLookups: they may use connections that others need.
func TestOverload_BoundsLookups(t *testing.T) {
	t.Parallel()
	const lookups = 2
	store := &heldStore{release: make(chan struct{})}
	s := setupCrowded(t, func(c *httpapi.Config) {
		if c.Replica == "api-1" {
			store.Store, c.Store, c.Lookups = c.Store, store, lookups
		}
	})
	s.fill()
	answers := make(chan reply)
	for range 4 * lookups {
		go func() { answers <- s.do(request{method: "POST", path: "/v1/orders", key: newKey(), body: "{}"}) }()
	}
	for n := range 4 * lookups {
		if n == 3*lookups { // all but those that are held
			require.EqualValues(t, lookups, store.lookups.Load())
			close(store.release)
		}
		answer := <-answers
		answer.problem(http.StatusServiceUnavailable, "overloaded")
	}
}

func TestOverload_LetsAnotherReplicaServe(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	order, key := orderOf(s.customer().ID, "tee-black", 1), newKey()
	s.fill()
	s.post("/v1/orders", key, order, http.StatusServiceUnavailable)
	answer := s.do(request{method: "POST", path: "/v1/orders", key: key, body: order, replica: 1})
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
}

func TestOverload_FreesTheSlotOfAWaiter(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	order := s.order(s.customer().ID)
	key := newKey()
	slow := make(chan reply, 1)
	pay := request{method: "POST", path: payments(order.ID), key: key, body: card("tok_slow_2s"), replica: 1}
	go func() { slow <- s.do(pay) }()
	s.eventually(func() bool {
		return s.do(request{method: "GET", path: "/v1/idempotency-keys/" + key, replica: 1}).status == http.StatusOK
	}, "the first attempt runs")

	waiter := make(chan reply, 1)
	pay.replica, pay.edit = 0, with("Prefer", "wait=30")
	go func() { waiter <- s.do(pay) }()
	s.eventually(func() bool { return s.limiter.Stats().Waiting == 1 }, "the second one waits")
	require.Zero(t, s.limiter.Stats().InUse)
	first, second := <-slow, <-waiter
	require.Equal(t, http.StatusCreated, first.status, first.body)
	requireSame(t, first, second)
	s.eventually(func() bool { return s.limiter.Stats().Waiting+s.limiter.Stats().InUse == 0 }, "nothing is held")
	require.Equal(t, "succeeded", string(decode[api.Payment](second).Status))
}

func TestOverload_TurnsAwaySoon(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	s.fill()
	unknown := func(context.Context) admission.Key { return admission.Unknown }
	ctx, leave := context.WithCancel(s.ctx)
	var queued sync.WaitGroup
	const filled = 40 // as many as the last class finds no room behind
	for range filled {
		queued.Go(func() { s.limiter.Enter(ctx, admission.Begun, s.account, false, unknown) })
	}
	s.eventually(func() bool { return s.limiter.Stats().Queued == filled }, "they wait")
	quickest := time.Hour
	for range 10 {
		began := time.Now()
		s.do(request{method: "GET", path: "/v1/orders"}).problem(http.StatusServiceUnavailable, "overloaded")
		quickest = min(quickest, time.Since(began))
	}
	leave()
	queued.Wait()
	require.Less(t, quickest, time.Second, "a request that was queued waits so long before it is rejected")
}

// TestOverload_ASlowSenderHoldsNoSlot: as many requests as there are slots have begun to send.
func TestOverload_ASlowSenderHoldsNoSlot(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	customer := s.customer().ID
	for range 20 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.replicas[0].URL, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", demo, newKey())
		require.NoError(t, err)
	}
	s.eventually(func() bool { return s.limiter.Stats().Reading == 20 }, "all are being read")
	require.Zero(t, s.limiter.Stats().InUse)
	s.post("/v1/orders", newKey(), orderOf(customer, "tee-black", 1), http.StatusCreated)
}

// TestOverload_WhoReadsNothingHoldsNoSlot: an account asks for a list of two megabytes, more often
// than there are slots.
func TestOverload_WhoReadsNothingHoldsNoSlot(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	const products, orders, list = 50, 50, "/v1/orders?limit=100"
	var items []string
	for i := range products {
		sku := fmt.Sprintf("long-%d", i)
		s.do(request{method: "PUT", path: "/v1/products/" + sku, body: fmt.Sprintf(`{"name":%q,"price":{"amount":1,"currency":"USD"},"stock":1000}`, strings.Repeat("界", 200))})
		items = append(items, fmt.Sprintf(`{"sku":%q,"quantity":1}`, sku))
	}
	body := fmt.Sprintf(`{"customer_id":%q,"items":[%s]}`, s.customer().ID, strings.Join(items, ","))
	for range orders {
		s.post("/v1/orders", newKey(), body, http.StatusCreated)
	}
	size := len(s.get(list).body)
	require.Greater(t, size, 1<<20)
	server := strings.TrimPrefix(s.replicas[0].URL, "http://")
	for range 30 {
		conn, err := slowreader.Ask(t.Context(), "127.0.0.1", server, list, demo)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	s.eventually(func() bool {
		return s.limiter.Stats().Admitted[admission.List]+s.limiter.Stats().TurnedAway[admission.List] == 31 && s.limiter.Stats().InUse == 0
	}, "all have their answer, or a refusal, and hold no slot")
	require.Positive(t, s.limiter.Stats().Unread)
	require.Less(t, s.limiter.Stats().Unread*64<<10, 24<<20)
	s.do(request{method: "GET", path: list}).problem(http.StatusServiceUnavailable, "overloaded")
	require.Equal(t, http.StatusOK, s.do(request{method: "GET", path: list, edit: as(other)}).status)
	s.post("/v1/customers", newKey(), `{"name":"Ada","email":"ada@example.com"}`, http.StatusCreated)
}
