package workload

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// skuOfLater is a product that does not exist at first.
var skuOfLater = regexp.MustCompile(`faults-later-[-0-9]+`)

// seen is one request as an endpoint got it.
type seen struct{ door, method, path, account, key, prefer, body, start string }

// logical is what all attempts of a request have in common.
func (s seen) logical() seen { s.door, s.prefer, s.start = "", "", ""; return s }

// fakeShop stands behind all endpoints. It answers every request, and a request that it knows as
// before; trouble comes first.
type fakeShop struct {
	mu      sync.Mutex
	seen    []seen
	ifMatch string                                        // of the last request
	stock   int                                           // of what is scarce
	trouble func(attempt int, w http.ResponseWriter) bool // says that this attempt, counted by key from one, had its answer
	tries   map[string]int
	first   map[string]string // the path and body that came with an account's key first
}

func newFakeShop(t *testing.T) (*fakeShop, *Wire) {
	t.Helper()
	f := &fakeShop{stock: 1_000_000, tries: map[string]int{}, first: map[string]string{}}
	urls := map[string]string{}
	for _, door := range endpoints {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, door) }))
		t.Cleanup(server.Close)
		urls[door] = server.URL
	}
	wire := NewWire(urls, journal.NewWriter(io.Discard))
	t.Cleanup(wire.Close)
	return f, wire
}

func (f *fakeShop) serve(w http.ResponseWriter, r *http.Request, door string) {
	raw, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	is := seen{door, r.Method, r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("Idempotency-Key"),
		r.Header.Get("Prefer"), string(raw), r.Header.Get("X-Request-Start")}
	f.ifMatch = r.Header.Get("If-Match")
	if is.method == http.MethodGet {
		_, _ = fmt.Fprint(w, `{"state":"completed","response_status":201}`)
		return
	}
	f.seen = append(f.seen, is)
	scope := is.account + " " + is.key
	if is.key == "" {
		scope += is.path // idempotent by nature
	}
	f.tries[scope]++
	w.Header().Set("X-Served-By", door)
	w.Header().Set("Content-Type", "application/json")
	if f.trouble != nil && f.trouble(f.tries[scope], w) {
		return
	}
	later := skuOfLater.FindString(is.body + is.path)
	switch {
	case is.method == http.MethodPut:
		f.first[later] = later
	case later != "" && f.first[later] == "":
		problem(w, http.StatusUnprocessableEntity, "unknown_product")
		return
	}
	meaning := is.method + is.path + is.body
	known, again := f.first[scope]
	switch {
	case again && known != meaning:
		problem(w, http.StatusUnprocessableEntity, "idempotency_key_reused")
		return
	case !again && strings.Contains(is.body, scarce):
		if f.stock == 0 {
			problem(w, http.StatusConflict, "out_of_stock")
			return
		}
		f.stock--
	}
	f.first[scope] = meaning
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"id":"%s"}`, uuid.NewSHA1(uuid.Nil, []byte(scope)))
}

func problem(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":"%s"}`, code)
}

func (f *fakeShop) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[:len(f.seen):len(f.seen)]
}

// clientsOf shop in a shop that need not be opened, and send again in the end.
func clientsOf(t *testing.T, wire *Wire, seed uint64) *Clients {
	t.Helper()
	accounts := []string{"sk_test_demo", "sk_test_other"}
	shop := &Shop{Accounts: accounts, Customers: map[string][]string{}}
	for _, account := range accounts {
		for i := range customersPerAccount {
			shop.Customers[account] = append(shop.Customers[account], uuid.NewSHA1(uuid.Nil, fmt.Append(nil, account, i)).String())
		}
	}
	c := NewClients(wire, shop, seed, 1)
	t.Cleanup(func() { c.end(); c.later.Wait() })
	return c
}

// act has some clients do their first things, side by side, and without pauses.
func act(t *testing.T, c *Clients, clients, actions int) {
	t.Helper()
	var group sync.WaitGroup
	for id := range clients {
		group.Go(func() {
			for n := range actions {
				c.action(id, n).act(t.Context())
			}
		})
	}
	group.Wait()
	c.end()
	c.later.Wait()
}

// digest is how the journal names a body.
func digest(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body))) }

func set(all []seen, of func(seen) seen) map[seen]bool {
	distinct := map[seen]bool{}
	for _, s := range all {
		distinct[of(s)] = true
	}
	return distinct
}

func requireSameRequests(t *testing.T, want, is map[seen]bool) {
	t.Helper()
	for s := range want {
		require.True(t, is[s], "missing: %+v", s)
	}
	require.True(t, maps.Equal(want, is))
}
