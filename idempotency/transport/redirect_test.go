package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
)

// TestTransport_NamesTheKeyOfTheRequestThatWasRedirected: the answer of the place that a redirect
// leads to is lost, and the caller repeats its own request.
func TestTransport_NamesTheKeyOfTheRequestThatWasRedirected(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusSeeOther, http.StatusPermanentRedirect} {
		var mu sync.Mutex
		seen := map[string][]string{} // the keys that each place saw
		lost := true
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.URL.Path] = append(seen[r.URL.Path], r.Header.Get(idempotency.HeaderKey))
			switch {
			case r.URL.Path == "/orders":
				http.Redirect(w, r, "/orders/1", status)
			case lost:
				panic(http.ErrAbortHandler)
			}
		}))
		t.Cleanup(server.Close)
		client := &http.Client{Transport: &transport.Transport{Base: &http.Transport{DisableKeepAlives: true}, MaxAttempts: 1, BaseDelay: time.Millisecond}}
		place := func(key string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", strings.NewReader("{}"))
			require.NoError(t, err)
			if key != "" {
				r.Header.Set(idempotency.HeaderKey, key)
			}
			response, err := client.Do(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}

		saw := func(path string) []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen[path])
		}

		var failed *transport.Error
		require.ErrorAs(t, place(""), &failed)
		require.Equal(t, []string{failed.Key}, saw("/orders"), "the caller's request, which leads to the other one")
		mu.Lock()
		lost = false
		mu.Unlock()
		require.NoError(t, place(failed.Key))
		require.Equal(t, []string{failed.Key, failed.Key}, saw("/orders"))
		if status == http.StatusPermanentRedirect {
			keys := saw("/orders/1")
			require.Equal(t, keys[:1], keys[1:], "one effect there, too")
			require.NotContains(t, keys, failed.Key, "a server that knows it with another path would refuse it")
		}
	}
}
