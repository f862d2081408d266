package httpapi_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/httpapi"
)

// hold keeps the stock of a product locked, so that orders of it wait, until release is called.
func (s *shop) hold(sku string) (release func()) {
	s.t.Helper()
	tx, err := s.pool.Begin(s.ctx)
	require.NoError(s.t, err)
	_, err = tx.Exec(s.ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; SELECT FROM products WHERE sku = '`+sku+`' FOR UPDATE`)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(s.ctx)) })
	return func() { require.NoError(s.t, tx.Rollback(s.ctx)) }
}

// waiters is how many sessions wait for a lock.
func (s *shop) waiters() int {
	return value[int](s, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
}

// start sends a request and gives its reply later.
func (s *shop) start(r request) <-chan reply {
	out := make(chan reply, 1)
	go func() {
		answer, err := s.try(s.ctx, r)
		if err != nil {
			answer.body = err.Error()
		}
		out <- answer
	}()
	return out
}

func (s *shop) await(from <-chan reply) reply {
	s.t.Helper()
	select {
	case r := <-from:
		r.t = s.t
		return r
	case <-s.ctx.Done():
		s.t.Fatal("no answer")
		return reply{}
	}
}

func TestConcurrent_OneOfTwoIsAnswered(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer().ID, newKey()
	body := orderOf(customer, "tee-black", 1)
	release := s.hold("tee-black")
	first := s.start(request{method: "POST", path: "/v1/orders", key: key, body: body})
	s.eventually(func() bool { return s.waiters() == 1 }, "the first order is under way")

	second := s.do(request{method: "POST", path: "/v1/orders", key: key, body: body, replica: 1})
	p := second.problem(409, "idempotency_in_progress")
	require.Equal(t, "A request with this idempotency key is already being processed. Retry after the original request completes.", p.Error)
	seconds, err := strconv.Atoi(second.header.Get("Retry-After"))
	require.NoError(t, err)
	require.True(t, seconds >= 1 && seconds <= 15, seconds)
	another := request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "tee-black", 2), replica: 1}
	undecided := s.do(another)
	undecided.problem(409, "idempotency_in_progress")
	require.Equal(t, "1", undecided.header.Get("Retry-After"))

	release()
	placed := s.await(first)
	require.Equal(t, http.StatusCreated, placed.status, placed.body)
	again := s.do(request{method: "POST", path: "/v1/orders", key: key, body: body, replica: 1})
	require.True(t, again.replayed())
	requireSame(t, placed, again)
	s.do(another).problem(422, "idempotency_key_reused")
	require.Equal(t, 1, value[int](s, `SELECT count(*) FROM orders`))
}

// TestConcurrent_AnotherRequestIsNotRefusedBeforeTheFirstIsDecided has the first request refused
// while another one with its key waits: the key is free then, and the other one is executed.
func TestConcurrent_AnotherRequestIsNotRefusedBeforeTheFirstIsDecided(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, owner := newKey(), s.customer().ID
	tx, err := s.pool.Begin(s.ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(s.ctx)) }()
	_, err = tx.Exec(s.ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; UPDATE customers SET email = 'taken@example.com' WHERE id = '`+owner.String()+`'`)
	require.NoError(t, err)
	first := s.start(request{method: "POST", path: "/v1/customers", key: key, body: `{"name":"Eve","email":"taken@example.com"}`})
	s.eventually(func() bool { return s.waiters() == 1 }, "the first request is under way")
	another := request{method: "POST", path: "/v1/customers", key: key, body: `{"name":"Eve","email":"eve@example.com"}`, replica: 1}
	s.do(another).problem(409, "idempotency_in_progress")
	waiting := another
	waiting.edit = with("Prefer", "wait=5")
	waited := s.start(waiting)

	require.NoError(t, tx.Commit(s.ctx))
	s.await(first).problem(409, "email_taken")
	executed := s.await(waited)
	require.Equal(t, http.StatusCreated, executed.status, executed.body)
	require.Equal(t, 2, value[int](s, `SELECT count(*) FROM customers`))
	require.True(t, s.do(another).replayed())
}

func TestConcurrent_PaymentsChargeOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	const clients = 20
	answers := make([]reply, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for {
				answer, err := s.try(s.ctx, request{method: "POST", path: payments(order), key: key, body: card("tok_visa"), replica: i % 2})
				if answers[i] = answer; err != nil || answer.status != http.StatusConflict {
					return
				}
			}
		})
	}
	all.Wait()
	fresh := 0
	for _, answer := range answers {
		require.Equal(t, http.StatusCreated, answer.status, answer.body)
		requireSame(t, answers[0], answer)
		if !answer.replayed() {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, 1, s.charges(order))
	require.Equal(t, 1, value[int](s, `SELECT count(*) FROM payments`))
	require.Equal(t, 2, value[int](s, `SELECT count(*) FROM ledger_entries`))
}

func TestClientGone_OrderIsFinished(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, body := newKey(), orderOf(s.customer().ID, "tee-black", 1)
	release := s.hold("tee-black")
	ctx, leave := context.WithCancel(s.ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := s.try(ctx, request{method: "POST", path: "/v1/orders", key: key, body: body})
		gone <- err
	}()
	s.eventually(func() bool { return s.waiters() == 1 }, "the order is under way")
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	s.eventually(func() bool { return value[int](s, `SELECT count(*) FROM orders`) == 1 }, "the order is placed")
	var retry reply
	s.eventually(func() bool {
		retry = s.do(request{method: "POST", path: "/v1/orders", key: key, body: body, replica: 1})
		return retry.status != http.StatusConflict
	}, "the key has its answer")
	require.Equal(t, http.StatusCreated, retry.status, retry.body)
	require.True(t, retry.replayed())
	require.Equal(t, 1, value[int](s, `SELECT count(*) FROM orders`))
}

func TestClientGone_PaymentChargesOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	ctx, leave := context.WithCancel(s.ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := s.try(ctx, request{method: "POST", path: payments(order), key: key, body: card("tok_slow_1s")})
		gone <- err
	}()
	s.eventually(func() bool { return s.charges(order) == 1 }, "the card is charged")
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	var retry reply
	s.eventually(func() bool {
		retry = s.do(request{method: "POST", path: payments(order), key: key, body: card("tok_slow_1s"), replica: 1})
		return retry.status != http.StatusConflict
	}, "the key has its answer")
	require.Equal(t, http.StatusCreated, retry.status, retry.body)
	require.True(t, retry.replayed())
	require.Equal(t, 1, s.charges(order))
}

// TestDeadline_HoldsWithoutAKey has changes wait for a lock for longer than they may take. With a
// key the handler has a deadline of its own; where the key is optional and missing, the request has
// one.
func TestDeadline_HoldsWithoutAKey(t *testing.T) {
	t.Parallel()
	const deadline = time.Second
	s := setup(t, func(cfg *httpapi.Config) { cfg.OrderDeadline = deadline })
	customer := s.customer().ID
	tx, err := s.pool.Begin(s.ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(s.ctx)) }()
	_, err = tx.Exec(s.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE customers")
	require.NoError(t, err)
	for _, key := range []string{"", newKey()} {
		began := time.Now()
		answer := s.do(request{method: "PATCH", path: "/v1/customers/" + customer.String(), key: key, body: `{"name":"Ada L."}`})
		require.Equal(t, http.StatusServiceUnavailable, answer.status, answer.body)
		require.Less(t, time.Since(began), 2*deadline, "key %q", key)
	}
}
