package httpapi_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

// TestPayment_SettlesBehindAnyNumberOfDeclines: the provider has more charges of the order than a
// reply holds when it charges and does not answer, and the payment is too old to be sent again.
func TestPayment_SettlesBehindAnyNumberOfDeclines(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	for i := range 250 {
		body := `{"amount":2500,"currency":"USD","reference":"` + order.ID.String() + `","source":"tok_declined"}`
		declined, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.pspURL+"/v1/charges", strings.NewReader(body))
		require.NoError(t, err)
		declined.Header.Set("Idempotency-Key", "earlier-"+strconv.Itoa(i))
		answer, err := s.http.Do(declined)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusPaymentRequired, answer.StatusCode)
	}
	pay := request{method: "POST", path: payments(order.ID), key: newKey(), body: card("tok_charged_silent")}
	s.do(pay).problem(503, "payment_outcome_unknown")
	_, err := s.pool.Exec(s.ctx, "UPDATE payments SET created_at = created_at - interval '25 hours'")
	require.NoError(t, err)

	settled := s.do(pay)
	require.Equal(t, 201, settled.status)
	require.Equal(t, api.Succeeded, decode[api.Payment](settled).Status)
	require.Equal(t, api.OrderStatusPaid, decode[api.Order](s.get("/v1/orders/"+order.ID.String())).Status)
}

// TestPayment_OfACardTesterIsRefused: the refusal is kept, and the order can still be cancelled.
func TestPayment_OfACardTesterIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	pay := func(key, token string) reply {
		return s.do(request{method: "POST", path: payments(order.ID), key: key, body: card(token)})
	}
	for range checkout.MaxDeclines {
		pay(newKey(), "tok_declined").problem(402, "payment_declined")
	}
	key := newKey()
	refused := pay(key, "tok_visa")
	refused.problem(409, "too_many_declines")
	requireSame(t, refused, pay(key, "tok_visa"))
	require.Zero(t, s.charges(order.ID))
	cancelled := s.do(request{method: "PATCH", path: "/v1/orders/" + order.ID.String(), key: newKey(), body: `{"status":"cancelled"}`})
	require.Equal(t, 200, cancelled.status)
}
