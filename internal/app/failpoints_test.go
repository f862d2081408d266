//go:build failpoints

package app

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/app/failpoint"
)

// TestFailpoint_IsReached has a real replica reach every point there is, in one order and its
// payment.
func TestFailpoint_IsReached(t *testing.T) {
	r := serveSeeded(t, testConfig(t))
	send := func(method, path string) int {
		answer, err := request(t.Context(), method, "http://"+r.OpsAddr()+"/failpoints/"+path, "", "")
		require.NoError(t, err)
		return answer.status
	}
	for _, name := range failpoint.Names {
		require.Equal(t, http.StatusNoContent, send(http.MethodPost, name+"?pause=1ms"))
	}
	payment := r.call(http.MethodPost, "/v1/orders/"+r.placeOrder()+"/payments", "payment", cardPayment("tok_visa"))
	require.Equal(t, http.StatusCreated, payment.status, payment.body)
	for _, name := range failpoint.Names {
		reached := func() bool { return send(http.MethodGet, name) == http.StatusNotFound }
		require.Eventually(t, reached, patience, pause, name)
	}
}
