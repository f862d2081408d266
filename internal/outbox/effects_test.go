package outbox_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// made is the reply to a resource that was made.
func made[T any](value T, err *checkout.Error) checkout.Reply {
	if err != nil {
		return checkout.Reply{Status: 409, Body: []byte(err.Code)}
	}
	body, marshalErr := json.Marshal(value)
	if marshalErr != nil {
		panic(marshalErr)
	}
	return checkout.Reply{Status: 201, Body: body}
}

func madeOf[T any](t *testing.T, reply checkout.Reply, err error) (value T) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, 201, reply.Status, "%s", reply.Body)
	require.NoError(t, json.Unmarshal(reply.Body, &value))
	return value
}

// seller places orders and pays them from a wallet.
type seller struct {
	*shop
	store    *postgres.Store
	customer uuid.UUID
}

func (s *shop) seller() *seller {
	s.t.Helper()
	store, call := postgres.NewStore(s.pool, postgres.Options{}), checkout.Call{Account: s.account}
	price := checkout.Money{Amount: 100, Currency: "USD"}
	_, _, err := store.PutProduct(s.ctx, s.account, checkout.Product{SKU: "cap", Name: "Cap", Price: price, Stock: 1000})
	require.NoError(s.t, err)
	reply, err := store.CreateCustomer(s.ctx, call, checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"}, made)
	customer := madeOf[checkout.Customer](s.t, reply, err)
	_, err = store.TopUp(s.ctx, call, checkout.NewTopUp{CustomerID: customer.ID,
		Amount: checkout.Money{Amount: 100_000, Currency: "USD"}}, made)
	require.NoError(s.t, err)
	return &seller{shop: s, store: store, customer: customer.ID}
}

// sell places and pays so many orders.
func (s *seller) sell(n int) (orders []uuid.UUID) {
	s.t.Helper()
	for range n {
		order := s.sellUnpaid()
		reply, err := s.store.PayFromWallet(s.ctx, checkout.Call{Account: s.account},
			checkout.NewPayment{OrderID: order, Method: checkout.MethodWallet}, made)
		madeOf[checkout.Payment](s.t, reply, err)
		orders = append(orders, order)
	}
	return orders
}

func (s *seller) sellUnpaid() uuid.UUID {
	s.t.Helper()
	reply, err := s.store.PlaceOrder(s.ctx, checkout.Call{Account: s.account}, checkout.NewOrder{CustomerID: s.customer,
		Items: []checkout.Wanted{{SKU: "cap", Quantity: 1}}}, made)
	return madeOf[checkout.Order](s.t, reply, err).ID
}

// effects counts the confirmations and notices, and of how many orders they are.
func (s *seller) effects() (confirmed, confirmedOrders, noticed, noticedOrders int) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.ctx, `SELECT
		(SELECT count(*) FROM order_confirmations), (SELECT count(DISTINCT order_id) FROM order_confirmations),
		(SELECT count(*) FROM warehouse_notices), (SELECT count(DISTINCT order_id) FROM warehouse_notices)`).
		Scan(&confirmed, &confirmedOrders, &noticed, &noticedOrders))
	return confirmed, confirmedOrders, noticed, noticedOrders
}

// awaitEffects waits until that many orders have had both their effects, and requires that they had them once.
func (s *seller) awaitEffects(orders int) {
	s.t.Helper()
	s.await("every order had its effects", func() bool {
		_, confirmed, _, noticed := s.effects()
		return confirmed == orders && noticed == orders
	})
	s.requireOnce(orders)
}

func (s *seller) requireOnce(orders int) {
	s.t.Helper()
	confirmed, _, noticed, _ := s.effects()
	require.Equal(s.t, []int{orders, orders}, []int{confirmed, noticed}, "confirmations and notices")
}

func TestEachEventHasItsEffectOnceWhenTheStreamIsLostAndReplayed(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL).seller()
	for range 2 {
		s.start(outbox.NewRelay(s, s.stream, outbox.RelayConfig{Logger: quiet}))
	}
	stop := s.startConsumers("api-1")
	first := s.sell(20)
	s.awaitEffects(len(first))

	stop()
	lost := s.sell(20)
	s.await("all is published", func() bool { return s.waiting() == 0 })
	require.NoError(t, s.client.FlushAll(s.ctx).Err())
	s.startConsumers("api-1")
	s.startConsumers("api-2")
	after := s.sell(5) // consumed by groups that were made anew
	s.awaitEffects(len(first) + len(after))

	n, err := s.Replay(s.ctx, 10*time.Minute)
	require.NoError(t, err)
	events := 2 + 2*(len(first)+len(lost)+len(after)) // a customer and a top-up, too
	require.EqualValues(t, events, n)
	s.awaitEffects(len(first) + len(lost) + len(after))

	// Once more, with nothing lost: only repetitions.
	read := func() int64 { return s.client.XInfoStream(s.ctx, outbox.DefaultStream).Val().EntriesAdded }
	before := read()
	_, err = s.Replay(s.ctx, 10*time.Minute)
	require.NoError(t, err)
	s.await("all is published again", func() bool { return read() >= before+int64(events) })
	for _, sub := range s.inbox.Subscriptions() {
		s.await("all is consumed", func() bool { return s.unread(sub.Group) == 0 && s.pending(sub.Group) == 0 })
	}
	s.requireOnce(len(first) + len(lost) + len(after))
}

// unread is how many entries of the stream a group was not given yet.
func (s *shop) unread(group string) int64 {
	s.t.Helper()
	groups, err := s.client.XInfoGroups(s.ctx, outbox.DefaultStream).Result()
	require.NoError(s.t, err)
	i := slices.IndexFunc(groups, func(g redis.XInfoGroup) bool { return g.Name == group })
	require.GreaterOrEqual(s.t, i, 0)
	return groups[i].Lag
}

func TestABlockedConsumerNoticesThatTheStreamIsGone(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.RedisServer(t).URL)
	s.startConsumers("api-1")
	s.await("a consumer waits for events", func() bool { return s.blocked() == 2 })
	require.NoError(t, s.client.FlushAll(s.ctx).Err())
	event := s.orderPlaced()
	s.publish(event)
	s.await("the event is handled", func() bool { return s.confirmations(event) == 1 })
}

// blocked is how many clients of Redis wait in a read.
func (s *shop) blocked() int {
	s.t.Helper()
	fields := s.client.InfoMap(s.ctx, "clients").Val()
	n, err := strconv.Atoi(fields["Clients"]["blocked_clients"])
	require.NoError(s.t, err)
	return n
}

func TestAHundredEventsASecondLagFarLessThanASecond(t *testing.T) {
	t.Parallel()
	s := setupShop(t, testenv.Redis(t)).seller()
	const orders, rate = 100, 50 // each has two events
	for range 2 {
		s.start(outbox.NewRelay(s, s.stream, outbox.RelayConfig{Logger: quiet}))
	}
	s.startConsumers("api-1")
	ticker := time.NewTicker(time.Second / rate)
	defer ticker.Stop()
	for range orders {
		<-ticker.C
		s.sell(1)
	}
	s.awaitEffects(orders)
	lags := value[[]float64](s.bundle, `SELECT percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY extract(epoch FROM i.created_at - o.created_at))
		FROM inbox i JOIN outbox o USING (event_id)`)
	t.Logf("from the business transaction to the effect: p50 %.1f ms, p99 %.1f ms, max %.1f ms", lags[0]*1000, lags[1]*1000, lags[2]*1000)
	require.Less(t, lags[1], 1.0)
}
