package outbox_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
)

// made is the reply to a resource that was made.
func made(value any, err *checkout.Error) any {
	if err != nil {
		return authority.Answer{Status: 409, Body: []byte(err.Code)}
	}
	body, marshalErr := json.Marshal(value)
	if marshalErr != nil {
		panic(marshalErr)
	}
	return authority.Answer{Status: 201, Body: body}
}

func madeOf[T any](t *testing.T, reply checkout.Answer, err error) (value T) {
	t.Helper()
	require.NoError(t, err)
	kept := reply.Content.(authority.Result)
	require.Equal(t, 201, kept.Status, "%s", kept.Body)
	require.NoError(t, json.Unmarshal(kept.Body, &value))
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
	store, call := postgres.NewStore(s.pool, postgres.Options{EventsWritten: s.wakeAll}), checkout.Call{Account: s.account, Encode: made}
	price := checkout.Money{Amount: 100, Currency: "USD"}
	_, err := store.PutProduct(s.ctx, checkout.Call{Account: s.account, Encode: made}, checkout.ProductWrite{SKU: "cap", Name: "Cap", Price: price, Stock: 1000})
	require.NoError(s.t, err)
	reply, err := store.CreateCustomer(s.ctx, call, checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"})
	customer := madeOf[checkout.Customer](s.t, reply, err)
	_, err = store.TopUp(s.ctx, call, checkout.NewTopUp{CustomerID: customer.ID,
		Amount: checkout.Money{Amount: 100_000, Currency: "USD"}})
	require.NoError(s.t, err)
	return &seller{shop: s, store: store, customer: customer.ID}
}

// sell places and pays so many orders.
func (s *seller) sell(n int) {
	s.t.Helper()
	for range n {
		order := s.sellUnpaid()
		reply, err := s.store.PayFromWallet(s.ctx, checkout.Call{Account: s.account, Encode: made},
			checkout.NewPayment{OrderID: order, Method: checkout.MethodWallet})
		madeOf[checkout.Payment](s.t, reply, err)
	}
}

func (s *seller) sellUnpaid() uuid.UUID {
	s.t.Helper()
	reply, err := s.store.PlaceOrder(s.ctx, checkout.Call{Account: s.account, Encode: made}, checkout.NewOrder{CustomerID: s.customer,
		Items: []checkout.Wanted{{SKU: "cap", Quantity: 1}}})
	return madeOf[checkout.Order](s.t, reply, err).ID
}

// effects counts the confirmations and notices, and of how many orders they are.
func (s *seller) effects() (confirmed, confirmedOrders, noticed, noticedOrders int) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.ctx, `SELECT
		(SELECT count(*) FROM order_confirmations WHERE type = 'order.placed'),
		(SELECT count(DISTINCT order_id) FROM order_confirmations WHERE type = 'order.placed'),
		(SELECT count(*) FROM warehouse_notices), (SELECT count(DISTINCT order_id) FROM warehouse_notices)`).
		Scan(&confirmed, &confirmedOrders, &noticed, &noticedOrders))
	return confirmed, confirmedOrders, noticed, noticedOrders
}

// awaitEffects waits until that many orders have had both their effects, and requires that they had
// them once.
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

// blocked is how many clients of Redis wait in a read.
func (s *shop) blocked() int {
	s.t.Helper()
	fields := s.client.InfoMap(s.ctx, "clients").Val()
	n, err := strconv.Atoi(fields["Clients"]["blocked_clients"])
	require.NoError(s.t, err)
	return n
}

// TestEvents_HaveTheirEffectSoon has a relay that never looks by itself: a commit wakes it. The
// stress test measures how soon that is.
func TestEvents_HaveTheirEffectSoon(t *testing.T) {
	t.Parallel()
	const orders = 5
	s := setupShop(t, testenv.Redis(t)).seller()
	s.start(outbox.NewRelay(s, s.stream, outbox.RelayConfig{Groups: postgres.ConsumerGroups(), Poll: time.Hour, Logger: quiet}))
	s.startConsumers("api-1")
	for n := range orders {
		s.sell(1)
		s.awaitEffects(n + 1)
	}
}
