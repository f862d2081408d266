package tiers

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/pspsim"
	"github.com/oncepay/oncepay/internal/stack"
)

func TestCharges_AreThoseOfTheOrder(t *testing.T) {
	t.Parallel()
	sim, err := pspsim.New(filepath.Join(t.TempDir(), "journal"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	provider := httptest.NewServer(sim)
	t.Cleanup(func() { provider.Close(); require.NoError(t, sim.Close()) })
	for i := range 3 {
		body := strings.NewReader(`{"amount":1,"currency":"USD","reference":"order","source":"tok_declined"}`)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/charges", body)
		request.Header.Set("Idempotency-Key", fmt.Sprint("payment-", i))
		answer := httptest.NewRecorder()
		sim.ServeHTTP(answer, request)
		require.Equal(t, http.StatusPaymentRequired, answer.Code)
	}
	var at stack.Topology
	at.Offset = provider.Listener.Addr().(*net.TCPAddr).Port - at.Port(stack.PSP)
	charges, err := Charges(t.Context(), &at, "order")
	require.NoError(t, err)
	require.Len(t, charges, 3)
	require.Equal(t, "payment-2", charges[2].Key)
	charges, err = Charges(t.Context(), &at, "another")
	require.NoError(t, err)
	require.Empty(t, charges)
}
