package console

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeAPI answers as the API does to a shopper for whom everything goes well, and remembers the
// payments. Safe for concurrent use.
type fakeAPI struct {
	mu       sync.Mutex
	payments []string // key and token
}

func (a *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Served-By", "api-1")
	if strings.HasSuffix(r.URL.Path, "/payments") {
		_, rest, _ := strings.Cut(string(body), `"token":"`)
		token, _, _ := strings.Cut(rest, `"`)
		a.mu.Lock()
		a.payments = append(a.payments, r.Header.Get("Idempotency-Key")+" "+token)
		if len(a.payments) > 1 {
			w.Header().Set("X-Idempotent-Replay", "true")
		}
		a.mu.Unlock()
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprint(w, `{"id":"made"}`)
}

// shopperConsole presses the shopper's buttons; await returns the attempts when all are answered.
func shopperConsole(t *testing.T) (c *testConsole, api *fakeAPI, press func(button string) (int, string)) {
	t.Helper()
	api = &fakeAPI{}
	c = newTestConsole(t, api.serve)
	return c, api, func(button string) (int, string) {
		return c.press("/shopper", url.Values{"button": {button}, "token": {"tok_visa"}})
	}
}

func (c *testConsole) await(n int) (done []*attempt) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		done = nil
		c.change(func(now *state) {
			for _, a := range slices.Backward(now.Attempts) {
				if a.Done {
					done = append(done, a)
				}
			}
		})
		return len(done) == n
	}, patience, time.Millisecond)
	return done
}

func TestShopper_RetriesTheSameRequest(t *testing.T) {
	t.Parallel()
	c, api, press := shopperConsole(t)
	status, said := press("retry")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, said, "order and pay first")

	status, _ = press("pay")
	require.Equal(t, http.StatusOK, status)
	first := c.await(1)[0]
	require.Equal(t, "pay with tok_visa", first.What)
	require.Equal(t, 201, first.Status)
	_, _ = press("retry")
	again := c.await(2)[1]
	require.Equal(t, first.Key, again.Key)
	require.True(t, again.Replay)
	require.NotEqual(t, first.Trace, again.Trace, "each attempt is a trace of its own")
	require.Equal(t, api.payments[0], api.payments[1])
	require.Equal(t, first.Key, c.now().View.Key, "the key view shows the newest payment")
}

func TestShopper_DoubleClickSendsOnePaymentTwice(t *testing.T) {
	t.Parallel()
	c, api, press := shopperConsole(t)
	_, _ = press("double")
	c.await(2)
	require.Equal(t, api.payments[0], api.payments[1])
}

func TestShopper_SendsAnotherCardUnderTheSameKey(t *testing.T) {
	t.Parallel()
	c, api, press := shopperConsole(t)
	_, _ = press("pay")
	key := c.await(1)[0].Key
	_, _ = press("other-card")
	c.await(2)
	require.Equal(t, []string{key + " tok_visa", key + " tok_mastercard"}, api.payments)
}

func TestShopper_GoesToTheReplicaThatDidNotGetThePaymentFirst(t *testing.T) {
	t.Parallel()
	c, _, press := shopperConsole(t)
	_, _ = press("pay")
	first := c.await(1)[0]
	for range 2 { // also when the other one has answered since
		_, said := press("other-replica")
		require.Contains(t, said, "Sent to api-2")
	}
	c.await(3)
	c.change(func(*state) { first.add(at(1, "api-2", "redis", "set")) }) // passed on to api-1, which answered
	_, said := press("other-replica")
	require.Contains(t, said, "Sent to api-1")
	c.await(4)
}

func TestShopper_RefusesWhatNoButtonSends(t *testing.T) {
	t.Parallel()
	_, _, press := shopperConsole(t)
	status, _ := press("refund")
	require.Equal(t, http.StatusConflict, status)
}
