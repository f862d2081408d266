package workload

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenShop_RetriesItsRequests has every request of the set-up fail once: the next attempt, with
// the same key, gets through.
func TestOpenShop_RetriesItsRequests(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	f.trouble = func(attempt int, w http.ResponseWriter) bool {
		if attempt == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return attempt == 1
	}
	accounts := []string{"sk_test_demo", "sk_test_other"}
	shop, err := OpenShop(t.Context(), wire.Endpoints[nginx], accounts)
	require.NoError(t, err)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)

	times := map[seen]int{}
	for _, s := range f.requests() {
		times[s.logical()]++
	}
	puts, customers, topUps := 0, 0, 0
	for s, n := range times {
		require.Equal(t, 2, n, "%+v", s)
		switch {
		case s.method == http.MethodPut:
			puts++
		case s.path == "/v1/customers":
			customers++
		case strings.HasSuffix(s.path, "/top-ups"):
			topUps++
		}
	}
	require.Equal(t, []int{(len(ample) + 1) * len(accounts), customersPerAccount * len(accounts), customersPerAccount * len(accounts)},
		[]int{puts, customers, topUps})
	for _, account := range accounts {
		require.Len(t, shop.Customers[account], customersPerAccount)
		require.Equal(t, map[string]int64{"faults-cup": ampleStock, "faults-hat": ampleStock, "faults-pen": ampleStock, scarce: scarceStock}, shop.Opening[account])
	}

	f.trouble = func(_ int, w http.ResponseWriter) bool {
		problem(w, http.StatusUnauthorized, "unauthorized")
		return true
	}
	_, err = OpenShop(t.Context(), wire.Endpoints[nginx], accounts)
	require.ErrorContains(t, err, "open the shop: POST /v1/customers")
	require.ErrorContains(t, err, "401")
}
