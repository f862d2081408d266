package httpapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// budgetOf is what one account may keep at each replica in these tests.
const budgetOf = 20

func newCustomer(key string, edit ...func(*http.Request)) request {
	r := request{method: "POST", path: "/v1/customers", key: key, body: fmt.Sprintf(`{"name":"Ada","email":%q}`, key+"@example.com")}
	for _, e := range edit {
		r.edit = e
	}
	return r
}

func setupBudget(t *testing.T) *shop {
	t.Helper()
	return setup(t, func(c *httpapi.Config) { c.Budget = admission.NewBudget(budgetOf, 1<<20) })
}

// TestBudget_StopsTheAccountThatFillsRedis and no other: one floods both replicas with new keys,
// while another one works.
func TestBudget_StopsTheAccountThatFillsRedis(t *testing.T) {
	t.Parallel()
	const clients, each, work = 8, 50, 2 * budgetOf
	s := setupBudget(t)
	var flood sync.WaitGroup
	for range clients {
		flood.Go(func() {
			for i := range each {
				r := newCustomer(newKey())
				r.replica = i % 2
				if answer := s.do(r); answer.status != http.StatusCreated {
					answer.problem(http.StatusTooManyRequests, "budget_used_up")
				}
			}
		})
	}
	for i := range work {
		r := newCustomer(newKey(), as(other))
		r.replica = i % 2
		require.Equal(t, http.StatusCreated, s.do(r).status)
	}
	flood.Wait()
	kept := len(s.redisKeys("*")) - work
	require.GreaterOrEqual(t, kept, 2*budgetOf)
	require.LessOrEqual(t, kept, 2*(budgetOf+clients), "one more for each request that was under way")
}

// TestBudget_StopsNoRetry: neither of what is kept, nor of what Redis has lost.
func TestBudget_StopsNoRetry(t *testing.T) {
	t.Parallel()
	s := setupBudget(t)
	first := newCustomer(newKey())
	created := s.do(first)
	for range budgetOf - 1 {
		require.Equal(t, http.StatusCreated, s.do(newCustomer(newKey())).status)
	}
	before := s.footprint()
	refused := newCustomer(newKey())
	answer := s.do(refused)
	answer.problem(http.StatusTooManyRequests, "budget_used_up")
	wait, err := strconv.Atoi(answer.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 24*3600, wait, 700, "when the first answers are forgotten")
	require.Equal(t, before, s.footprint(), "it leaves nothing")
	require.Equal(t, http.StatusOK, s.do(request{method: "GET", path: "/v1/products"}).status)

	requireSame(t, created, s.do(first))
	require.NoError(t, s.redis.FlushDB(s.ctx).Err())
	requireSame(t, created, s.do(first))
	refused.replica = 1
	require.Equal(t, http.StatusCreated, s.do(refused).status, "the key was not used")
}

// TestBudget_CountsWhatRedisKeeps, and rather more than that.
func TestBudget_CountsWhatRedisKeeps(t *testing.T) {
	t.Parallel()
	budget := admission.NewBudget(1000, 1<<20)
	s := setup(t, func(c *httpapi.Config) { c.Budget = budget })
	customer := s.customer().ID
	s.do(request{method: "POST", path: payments(s.order(customer).ID), key: newKey(), body: card("tok_visa")})
	var kept int64
	for _, key := range s.redisKeys("*") {
		bytes, err := s.redis.MemoryUsage(s.ctx, key).Result()
		require.NoError(t, err)
		kept += bytes
	}
	require.InDelta(t, 1.2, budget.Stats().Most*(1<<20)/float64(kept), 0.2)
}

// TestBudget_CountsWhatAPutWithoutAKeyCreates: its rows are in PostgreSQL, which is for all.
func TestBudget_CountsWhatAPutWithoutAKeyCreates(t *testing.T) {
	t.Parallel()
	s := setupBudget(t)
	put := func(sku string) request {
		return request{method: "PUT", path: "/v1/products/" + sku, body: `{"name":"Mug","price":{"amount":900,"currency":"USD"},"stock":1}`}
	}
	for range 2 * budgetOf { // it creates one, and replaces it
		require.Contains(t, []int{http.StatusCreated, http.StatusOK}, s.do(put("mug")).status)
	}
	for i := range budgetOf - 1 {
		require.Equal(t, http.StatusCreated, s.do(put(fmt.Sprint("mug-", i))).status)
	}
	s.do(put("one-too-many")).problem(http.StatusTooManyRequests, "budget_used_up")
	s.do(newCustomer(newKey())).problem(http.StatusTooManyRequests, "budget_used_up")
}
