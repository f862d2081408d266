package oncecheck

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// speaking is a server with the library's middleware.
func speaking(t *testing.T, opts ...idempotency.Option) string {
	t.Helper()
	var orders atomic.Int64
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Required: true}),
		append(opts, idempotency.WithSharedScope())...)
	t.Cleanup(keys.Wait)
	server := httptest.NewServer(keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := orders.Add(1)
		time.Sleep(200 * time.Millisecond) // others of eight at once meet it
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":%d}`, n)
	})))
	t.Cleanup(server.Close)
	return server.URL
}

// TestDialects_AreToldApart: a server that speaks a dialect differs from it only where dialects.md
// says so, and from the others more.
func TestDialects_AreToldApart(t *testing.T) {
	t.Parallel()
	differs := map[string][]string{
		"ACP": {"another path"}, "UCP": {"another path", "other member order"}, // not offered, and different
	}
	for name, opts := range map[string][]idempotency.Option{
		"oncepay": nil,
		"IETF":    {idempotency.WithDialect(idempotency.IETF("https://docs.example.com/retries"))},
		"Stripe":  {idempotency.WithDialect(idempotency.Stripe)},
		"ACP":     {idempotency.WithDialect(idempotency.ACP)},
		"UCP":     {idempotency.WithDialect(idempotency.UCP)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := speaking(t, opts...)
			report, err := Run(t.Context(), Config{
				Request: Request{URL: url + "/orders", Body: `{"a":1,"b":2}`}, OtherURL: url + "/refunds", Rate: 10_000,
				Only: []string{"no-key", "other-body", "retry-after", "other-path", "member-order", "quoted-key", "replay"},
			})
			require.NoError(t, err)
			require.Len(t, report.Dialects, len(traits))
			refused := map[string][]string{}
			for _, trait := range report.Dialects {
				for _, dialect := range Dialects {
					if trait.Speaks[dialect] == "no" {
						refused[dialect] = append(refused[dialect], trait.Name)
					}
				}
			}
			require.Equal(t, differs[name], refused[name])
			for _, other := range Dialects {
				if other != name && (name != "IETF" || other != "oncepay") { // the draft names no codes: ours are there, too
					require.Greater(t, len(refused[other]), len(differs[other]), "%s: %v", other, refused)
				}
			}
		})
	}
}

// TestDialects_OfAnAPIThatWasNotAsked: what no rule has tried is not claimed.
func TestDialects_OfAnAPIThatWasNotAsked(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "")
	report, err := Run(t.Context(), Config{Request: Request{URL: url, Body: "{}"}, Only: []string{"empty-key", "replay"}})
	require.NoError(t, err)
	require.Len(t, report.Dialects, 2)
	require.Equal(t, Trait{"mark of a replay", "none", map[string]string{"IETF": "-", "Stripe": "no", "ACP": "no", "UCP": "-", "oncepay": "no"}},
		report.Dialects[0])
}
