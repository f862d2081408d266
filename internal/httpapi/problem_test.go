package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

func TestProblemOf_MapsEveryError(t *testing.T) {
	t.Parallel()
	secret := errors.New("connection to 10.0.0.7 refused")
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"unknown":         {secret, 500, "internal_error"},
		"wrapped domain":  {fmt.Errorf("place order: %w", checkout.NotFound("customer")), 404, "customer_not_found"},
		"unavailable":     {checkout.Unavailable("reserve stock", secret), 503, "service_unavailable"},
		"timed out below": {checkout.Unavailable("reserve stock", context.DeadlineExceeded), 503, "service_unavailable"},
		"timed out":       {fmt.Errorf("wait: %w", context.DeadlineExceeded), 503, "request_timeout"},
		"client gone":     {context.Canceled, 503, "request_timeout"},
		"too large":       {&http.MaxBytesError{Limit: maxBody}, 413, "body_too_large"},
		"key reused":      {checkout.ErrKeyReused, 422, "idempotency_key_reused"},
		"in progress":     {idempotency.InProgress(time.Second), 409, "idempotency_in_progress"},
		"unknown kind":    {&checkout.Error{Kind: "new", Code: "new", Message: "new"}, 500, "internal_error"},
		"declined":        {checkout.Declined("card_declined"), 402, "payment_declined"},
		"e-mail taken":    {checkout.EmailTaken(), 409, "email_taken"},
		"unauthorized":    {checkout.ErrUnauthorized, 401, "unauthorized"},
	} {
		p := problemOf(c.err)
		require.Equal(t, c.status, p.status, name)
		require.Equal(t, c.code, p.code, name)
		require.NotContains(t, string(p.body("r")), "10.0.0.7", name)
	}
}

func TestProblemOf_EveryKindHasAStatus(t *testing.T) {
	t.Parallel()
	for kind, status := range map[checkout.Kind]int{
		checkout.KindInvalid: 400, checkout.KindUnauthorized: 401, checkout.KindDeclined: 402, checkout.KindNotFound: 404,
		checkout.KindConflict: 409, checkout.KindUnprocessable: 422, checkout.KindUnavailable: 503,
	} {
		require.Equal(t, status, problemOf(&checkout.Error{Kind: kind, Code: "c", Message: "m"}).status)
	}
}

// The library and the authority say the same of a key that is taken.
func TestProblemOf_LibraryAndAuthorityAreAlike(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]error{
		{idempotency.KeyReused(), checkout.ErrKeyReused},
		{idempotency.InProgress(time.Second), checkout.ErrKeyInProgress},
	} {
		require.Equal(t, problemOf(pair[0]).body("r"), problemOf(pair[1]).body("r"))
		require.Equal(t, problemOf(pair[0]).retryAfter, problemOf(pair[1]).retryAfter)
	}
}

// What is in the way is asked for again later and later, but never later than a lease.
func TestProblemOf_RetryAfterGrowsWithWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := checkout.Order{Status: checkout.OrderPaying, UpdatedAt: time.Now()}
		payment := checkout.Payment{Operation: checkout.Operation{Status: checkout.StatusProcessing, CreatedAt: time.Now()}}
		began := time.Now()
		for _, c := range []struct{ after, want time.Duration }{
			{0, time.Second}, {7 * time.Second, 7 * time.Second}, {time.Hour, idempotency.DefaultLease},
		} {
			time.Sleep(time.Until(began.Add(c.after)))
			_, _, refused := checkout.BeginCardRefund(payment, checkout.NewRefund{}, uuid.New(), time.Now())
			_, _, cancelled := checkout.UpdateOrder(order, checkout.OrderChange{Cancel: true}, time.Now())
			_, _, unpaid := checkout.BeginCardPayment(order, 0, checkout.NewPayment{}, uuid.New(), time.Now())
			for _, err := range []error{unpaid, refused, cancelled, checkout.KeyInProgressSince(began)} {
				require.Equal(t, c.want, problemOf(err).retryAfter, "%v after %s", err, c.after)
			}
		}
	})
}

func TestProblem_HasOneShape(t *testing.T) {
	t.Parallel()
	var got api.Problem
	require.NoError(t, json.Unmarshal(errRouteNotFound.body("r-1"), &got))
	require.Equal(t, api.Problem{Type: "/problems/route_not_found", Title: "Not Found", Status: 404,
		Detail: "There is nothing at this path.", Code: "route_not_found", Error: "There is nothing at this path.", RequestID: "r-1"}, got)
}

func TestProblem_OfAFinalErrorIsRenderedAsWritten(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), exchangeKey{}, &exchange{requestID: "r-1"})
	final := checkout.Declined("card_declined")
	reply := created(ctx, wirePayment, func(checkout.Payment) string { return "" })(checkout.Payment{}, final)
	require.Equal(t, http.StatusPaymentRequired, reply.Status)
	require.Equal(t, problemOf(final).body("r-1"), reply.Body)
	require.Equal(t, map[string]string{"Content-Type": problemType}, reply.Header)
}
