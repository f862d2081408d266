package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// TestPayments_OfAnOrderAreFound, also by a client that lost the answers and the keys: what was
// declined, and what is still processing.
func TestPayments_OfAnOrderAreFound(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	path := payments(order.ID)
	require.JSONEq(t, `{"data":[]}`, s.get(path).body)
	for range 2 {
		s.do(request{method: "POST", path: path, key: newKey(), body: card("tok_declined")}).problem(402, "payment_declined")
	}
	pay := request{method: "POST", path: path, key: newKey(), body: card("tok_charged_silent")}
	s.do(pay).problem(503, "payment_outcome_unknown")

	first := decode[api.PaymentPage](s.get(path + "?limit=2"))
	second := decode[api.PaymentPage](s.get(nextPage(path+"?limit=2&cursor=", first.NextCursor)))
	require.Nil(t, second.NextCursor)
	var states []api.PaymentStatus
	for _, payment := range append(first.Data, second.Data...) {
		require.Equal(t, order.ID, payment.OrderID)
		states = append(states, payment.Status)
	}
	require.Equal(t, []api.PaymentStatus{api.Processing, api.Declined, api.Declined}, states)
	paid := s.do(pay)
	require.Equal(t, decode[api.Payment](paid), decode[api.PaymentPage](s.get(path)).Data[0])

	s.order(s.customer().ID) // which is not listed
	s.do(request{method: "GET", path: path, edit: as(other)}).problem(404, "order_not_found")
	s.do(request{method: "GET", path: payments(uuid.New())}).problem(404, "order_not_found")
}

func TestRefunds_OfAPaymentAreFound(t *testing.T) {
	t.Parallel()
	s := setup(t)
	path := "/v1/payments/" + s.pay(s.order(s.customer().ID).ID).ID.String() + "/refunds"
	require.JSONEq(t, `{"data":[]}`, s.get(path).body)
	one := s.post(path, newKey(), `{"amount":{"amount":100,"currency":"USD"}}`, http.StatusCreated)
	two := s.post(path, newKey(), `{"amount":{"amount":200,"currency":"USD"}}`, http.StatusCreated)
	first := decode[api.RefundPage](s.get(path + "?limit=1"))
	require.Equal(t, []api.Refund{decode[api.Refund](two)}, first.Data)
	second := decode[api.RefundPage](s.get(nextPage(path+"?limit=1&cursor=", first.NextCursor)))
	require.Equal(t, []api.Refund{decode[api.Refund](one)}, second.Data)
	require.Nil(t, second.NextCursor)
	s.do(request{method: "GET", path: path, edit: as(other)}).problem(404, "payment_not_found")
	s.do(request{method: "GET", path: "/v1/payments/" + uuid.NewString() + "/refunds"}).problem(404, "payment_not_found")
}
