package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) {
	// A few random shops suffice, as each is checked after each of its steps. The command line may
	// ask for more.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	testenv.Main(m)
}

// testTimeout bounds every wait of a test.
const testTimeout = time.Minute

// bundle is a store on a database of its own, with the demo data.
type bundle struct {
	*Store
	t              *testing.T
	ctx            context.Context
	account, other uuid.UUID
}

func setup(t *testing.T) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	pool := open(t, testenv.Postgres(t))
	require.NoError(t, Seed(ctx, pool))
	return &bundle{Store: NewStore(pool, Options{}), t: t, ctx: ctx, account: demoAccounts[0].id, other: demoAccounts[1].id}
}

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := Open(context.Background(), Config{URL: url, MaxConns: 16})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// call is a call with a key; its fingerprint follows from the request.
func (b *bundle) call(key string, request any) checkout.Call {
	b.t.Helper()
	return checkout.Call{Account: b.account, Claim: claimFor(b.t, key, request), Encode: encode}
}

func claimFor(t testing.TB, key string, request any) *checkout.Claim {
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	return &checkout.Claim{Key: key, Fingerprint: sha256.Sum256(body), Operation: "test", TTL: time.Hour, ArrivedAt: time.Now()}
}

// keyless is a call without a key.
func (b *bundle) keyless() checkout.Call { return checkout.Call{Account: b.account, Encode: encode} }

// encode is what every test uses: the value as JSON, or the error's code.
func encode(value any, err *checkout.Error) any {
	if err != nil {
		return authority.Answer{Status: 409, Header: map[string]string{"Content-Type": "application/problem+json"}, Body: []byte(err.Code)}
	}
	body, marshalErr := json.Marshal(value)
	if marshalErr != nil {
		panic(marshalErr)
	}
	return authority.Answer{Status: 201, Header: map[string]string{"Content-Type": "application/json"}, Body: body}
}

// contentOf is the content of an answer of the store, or zero if there is no answer.
func contentOf(answer checkout.Answer) authority.Result {
	content, _ := answer.Content.(authority.Result)
	return content
}

// created is the answer to what was created.
var created = checkout.Answer{Content: authority.Result{Answer: authority.Answer{Status: 201}}}

// decode reads the value of a successful answer.
func decode[T any](t require.TestingT, answer checkout.Answer, err error) (value T) {
	require.NoError(t, err)
	require.Equal(t, 201, contentOf(answer).Status, "%s", contentOf(answer).Body)
	require.NoError(t, json.Unmarshal(contentOf(answer).Body, &value))
	return value
}

// requireRefused checks a final error that was made an answer.
func requireRefused(t *testing.T, code string, answer checkout.Answer, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, 409, contentOf(answer).Status)
	require.Equal(t, code, string(contentOf(answer).Body))
}

// requireCode checks a retryable error.
func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var domain *checkout.Error
	require.ErrorAs(t, err, &domain)
	require.Equal(t, code, domain.Code)
	require.True(t, domain.Retryable)
}

func (b *bundle) customer() checkout.Customer {
	b.t.Helper()
	answer, err := b.CreateCustomer(b.ctx, b.keyless(), checkout.NewCustomer{Name: "Ada", Email: newID().String() + "@example.com"})
	return decode[checkout.Customer](b.t, answer, err)
}

func (b *bundle) topUp(customer uuid.UUID, amount int64) {
	b.t.Helper()
	_, err := b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: usd(amount)})
	require.NoError(b.t, err)
}

// order places an order of the given customer for so many T-shirts at 2500.
func (b *bundle) order(customer uuid.UUID, quantity int32) checkout.Order {
	b.t.Helper()
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), wants(customer, "tee-black", quantity))
	return decode[checkout.Order](b.t, answer, err)
}

// pay pays an order by card or from the wallet.
func (b *bundle) pay(order checkout.Order, method checkout.Method) checkout.Payment {
	b.t.Helper()
	wanted := checkout.NewPayment{OrderID: order.ID, Method: method, Token: "tok_visa"}
	call := b.call("pay-"+order.ID.String(), wanted)
	if method == checkout.MethodWallet {
		answer, err := b.PayFromWallet(b.ctx, call, wanted)
		return decode[checkout.Payment](b.t, answer, err)
	}
	begun, err := b.CardPayments().Begin(b.ctx, call, wanted)
	require.NoError(b.t, err)
	require.Nil(b.t, begun.Answer)
	answer, err := b.CardPayments().Settle(b.ctx, begun.Taken, approved)
	return decode[checkout.Payment](b.t, answer, err)
}

func (b *bundle) orderStatus(id uuid.UUID) checkout.OrderStatus {
	b.t.Helper()
	order, err := b.Order(b.ctx, b.account, id)
	require.NoError(b.t, err)
	return order.Status
}

func (b *bundle) stock(sku string) int64 {
	b.t.Helper()
	product, err := b.Product(b.ctx, b.account, sku)
	require.NoError(b.t, err)
	return product.Stock
}

func (b *bundle) balance(customer uuid.UUID) int64 {
	b.t.Helper()
	wallet, err := b.Wallet(b.ctx, b.account, customer)
	require.NoError(b.t, err)
	return wallet.Balance.Amount
}

// value reads one value by SQL.
func value[T any](b *bundle, sql string, args ...any) (v T) {
	b.t.Helper()
	require.NoError(b.t, b.pool.QueryRow(b.ctx, sql, args...).Scan(&v))
	return v
}

// exec changes something behind the store's back.
func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, sql, args...)
	require.NoError(b.t, err)
}

func (b *bundle) count(sql string, args ...any) int {
	b.t.Helper()
	return value[int](b, "SELECT count(*) FROM "+sql, args...)
}

// events are the types of a subject's events, in order.
func (b *bundle) events(subject uuid.UUID) []string {
	b.t.Helper()
	return value[[]string](b, "SELECT array_agg(type ORDER BY id) FROM outbox WHERE subject = $1", subject)
}

// inParallel runs f n times at once and returns what each gave.
func inParallel[T any](n int, f func(i int) T) []T {
	results, start := make([]T, n), make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			results[i] = f(i)
		})
	}
	close(start)
	group.Wait()
	return results
}

// result is an answer with its error.
type result struct {
	answer checkout.Answer
	err    error
}

func resultOf(answer checkout.Answer, err error) result { return result{answer, err} }

// code is the error's code, final or not; empty is a success.
func (a result) code() string {
	var domain *checkout.Error
	switch {
	case errors.As(a.err, &domain):
		return domain.Code
	case a.err != nil:
		return a.err.Error()
	case contentOf(a.answer).Status == 201:
		return ""
	default:
		return string(contentOf(a.answer).Body)
	}
}

// tally counts answers by code.
func tally(answers []result) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		counts[a.code()]++
	}
	return counts
}

func usd(amount int64) checkout.Money { return checkout.Money{Amount: amount, Currency: "USD"} }

func wants(customer uuid.UUID, sku string, quantity int32) checkout.NewOrder {
	return checkout.NewOrder{CustomerID: customer, Items: []checkout.Wanted{{SKU: sku, Quantity: quantity}}}
}

// What a provider may answer.
var (
	approved = checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "ch_1"}
	declined = checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, DeclineCode: "card_declined"}
)
