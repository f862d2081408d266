// Package upgrade_test has the release of tests/upgrade/base and this one serve the same clients,
// through a rolling update and back. The fault campaign of `task test:upgrade` does so under load.
package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
)

const (
	// upTimeout bounds the whole test: programs may have to be compiled.
	upTimeout = 8 * time.Minute
	// patience bounds each wait, and tick is how often is looked meanwhile.
	patience, tick = time.Minute, 50 * time.Millisecond
)

// upgrade is a stack whose replicas are of two releases.
type upgrade struct {
	*stack.Stack
	t    *testing.T
	ctx  context.Context
	base string    // program of the earlier release
	keys int       // used so far
	kept []request // those with a kept answer
}

type request struct {
	method, path, key, body string
	answer                  answer
}

type answer struct {
	Status int
	Header http.Header // without those that differ from answer to answer, or are of the replica and not kept
	Body   string
}

// bringUp starts the earlier release on its own schema.
func bringUp(t *testing.T) *upgrade {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	t.Cleanup(cancel)
	build := exec.CommandContext(ctx, "./build.sh")
	build.Stderr = os.Stderr // why it cannot
	program, err := build.Output()
	require.NoError(t, err)
	base := strings.TrimSpace(string(program))
	s := stacktest.Up(ctx, t, stack.Options{Dir: ".stack-upgrade", Driver: stack.Native, BuildTags: "failpoints",
		// A client finishes what was begun. The whole load is one account's.
		Env:      []string{"IDEMPOTENCY_LEASE=2s", "RECONCILE_GRACE=1h", "RATE_LIMIT=100000"},
		Programs: map[string]string{stack.API1: base, stack.API2: base, stack.Oncepay: base}})
	return &upgrade{Stack: s, t: t, ctx: ctx, base: base}
}

// becomes replaces a replica; this release has no program.
func (u *upgrade) becomes(replica, program string) {
	u.t.Helper()
	require.NoError(u.t, u.Use(u.ctx, replica, program))
	require.NoError(u.t, u.Do(u.ctx, "restart", replica))
}

// send sends a request to a replica.
func (u *upgrade) send(replica string, r request) (a answer, replayed bool, err error) {
	return u.sendTo(u.Addr(replica), r)
}

func (u *upgrade) sendTo(addr string, r request) (a answer, replayed bool, err error) {
	q, err := http.NewRequestWithContext(u.ctx, r.method, "http://"+addr+r.path, strings.NewReader(r.body))
	if err != nil {
		return a, false, err
	}
	q.Close = true
	q.Header = http.Header{"Authorization": {"Bearer sk_test_demo"}, "Content-Type": {"application/json"}, "Idempotency-Key": {r.key}}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return a, false, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	replayed = response.Header.Get("X-Idempotent-Replay") == "true"
	for _, name := range []string{"Date", "Connection", "X-Served-By", "X-Request-Id", "X-Idempotent-Replay"} {
		response.Header.Del(name)
	}
	return answer{response.StatusCode, response.Header, string(body)}, replayed, err
}

// keyed is a request with a new key.
func (u *upgrade) keyed(method, path, body string) request {
	u.keys++
	return request{method: method, path: path, key: "upgrade-" + strconv.Itoa(u.keys), body: body}
}

// do has a request executed, and returns the ID of what it made.
func (u *upgrade) do(replica string, want int, method, path, body string) (id string) {
	u.t.Helper()
	r := u.keyed(method, path, body)
	var replayed bool
	var err error
	r.answer, replayed, err = u.send(replica, r)
	require.NoError(u.t, err)
	require.Equal(u.t, want, r.answer.Status, r.answer.Body)
	require.False(u.t, replayed)
	u.kept = append(u.kept, r)
	var made struct{ ID string }
	require.NoError(u.t, json.Unmarshal([]byte(r.answer.Body), &made))
	return made.ID
}

const visa, declined, wallet = `{"method":{"type":"card","token":"tok_visa"}}`, `{"method":{"type":"card","token":"tok_declined"}}`, `{"method":{"type":"wallet"}}`

func (u *upgrade) order(replica, customer string) (path string) {
	u.t.Helper()
	body := `{"customer_id":"` + customer + `","items":[{"sku":"tee-black","quantity":1}]}`
	return "/v1/orders/" + u.do(replica, http.StatusCreated, "POST", "/v1/orders", body)
}

// shop has a replica answer a request of each kind, and returns the customer.
func (u *upgrade) shop(replica string) (customer string) {
	u.t.Helper()
	customer = u.do(replica, http.StatusCreated, "POST", "/v1/customers", fmt.Sprintf(`{"name":"Ada","email":"ada%d@example.com"}`, u.keys))
	u.do(replica, http.StatusCreated, "POST", "/v1/customers/"+customer+"/top-ups", `{"amount":{"amount":90000,"currency":"USD"}}`)
	u.do(replica, http.StatusOK, "PATCH", "/v1/customers/"+customer, `{"name":"Ada L."}`)
	order := u.order(replica, customer)
	u.do(replica, http.StatusOK, "PATCH", order, `{"shipping_address":{"line1":"1 Main St","city":"London","postal_code":"N1","country":"GB"}}`)
	payment := u.do(replica, http.StatusCreated, "POST", order+"/payments", visa)
	u.do(replica, http.StatusCreated, "POST", "/v1/payments/"+payment+"/refunds", `{}`)
	order = u.order(replica, customer)
	u.do(replica, http.StatusPaymentRequired, "POST", order+"/payments", declined)
	u.do(replica, http.StatusCreated, "POST", order+"/payments", wallet)
	return customer
}

// replays has a replica answer every request again: from Redis, and then from PostgreSQL alone.
func (u *upgrade) replays(replica string) {
	u.t.Helper()
	for _, from := range []string{"Redis", "PostgreSQL"} {
		for _, r := range u.kept {
			again, replayed, err := u.send(replica, r)
			require.NoError(u.t, err)
			require.Equal(u.t, r.answer, again, "%s %s from %s", r.method, r.path, from)
			require.True(u.t, replayed, "%s %s from %s", r.method, r.path, from)
		}
		require.NoError(u.t, u.Do(u.ctx, "flush", stack.Redis))
	}
}

// finishes kills a replica that has charged a card and has not stored it. The other one finishes
// the payment, with no second charge.
func (u *upgrade) finishes(dying, other, customer string) {
	u.t.Helper()
	order := u.order(dying, customer)
	armed, _, err := u.sendTo(u.Ops(dying), request{method: "POST", path: "/failpoints/after-provider"})
	require.NoError(u.t, err)
	require.Equal(u.t, http.StatusNoContent, armed.Status)
	payment := u.keyed("POST", order+"/payments", visa)
	_, _, err = u.send(dying, payment)
	require.Error(u.t, err, "it died")
	require.Eventually(u.t, func() bool { // until the lease has ended
		payment.answer, _, err = u.send(other, payment)
		return err == nil && payment.answer.Status == http.StatusCreated
	}, patience, tick)
	u.kept = append(u.kept, payment)
	charges, _, err := u.sendTo(u.Addr(stack.PSP), request{method: "GET", path: "/v1/charges"})
	require.NoError(u.t, err)
	require.Equal(u.t, 1, strings.Count(charges.Body, strings.TrimPrefix(order, "/v1/orders/")))
	require.NoError(u.t, u.Do(u.ctx, "start", dying))
}

// consumes has one replica handle events that another one publishes, whose relay takes the lease
// while the first one is stopped.
func (u *upgrade) consumes(publishes, handles, customer string) {
	u.t.Helper()
	require.NoError(u.t, u.Do(u.ctx, "stop", handles))
	u.grows(publishes, "outbox_published_total", customer)
	require.NoError(u.t, u.Do(u.ctx, "start", handles))
	u.grows(handles, "events_consumed_total", customer)
	require.Zero(u.t, u.metric(handles, "outbox_published_total"))
}

// grows places orders at a replica until one of its metrics has grown.
func (u *upgrade) grows(replica, name, customer string) {
	u.t.Helper()
	before := u.metric(replica, name)
	require.Eventually(u.t, func() bool {
		u.order(replica, customer)
		return u.metric(replica, name) > before
	}, patience, tick)
}

// metric is the sum of a metric over its labels.
func (u *upgrade) metric(replica, name string) (sum float64) {
	u.t.Helper()
	metrics, _, err := u.sendTo(u.Ops(replica), request{method: "GET", path: "/metrics"})
	require.NoError(u.t, err)
	for _, of := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (.+)$`).FindAllStringSubmatch(metrics.Body, -1) {
		value, err := strconv.ParseFloat(of[1], 64)
		require.NoError(u.t, err)
		sum += value
	}
	return sum
}

func TestUpgrade_EachReleaseContinuesWhatTheOtherBegan(t *testing.T) {
	t.Parallel()
	u := bringUp(t)
	u.shop(stack.API1)
	require.NoError(t, u.Use(u.ctx, stack.Oncepay, ""))
	_, err := u.Oncepay(u.ctx, "migrate", "up")
	require.NoError(t, err)

	u.becomes(stack.API2, "")
	u.replays(stack.API2)
	earlier := slices.Clone(u.kept)
	customer := u.shop(stack.API2)
	u.replays(stack.API1)
	for _, pair := range [][2]string{{stack.API1, stack.API2}, {stack.API2, stack.API1}} {
		u.consumes(pair[1], pair[0], customer)
		u.finishes(pair[0], pair[1], customer)
	}

	u.becomes(stack.API1, "")
	u.replays(stack.API1)
	for _, replica := range stack.Replicas {
		u.becomes(replica, u.base)
	}
	u.replays(stack.API2)
	u.shop(stack.API1)
	u.replays(stack.API2)
	require.Greater(t, len(u.kept), 2*len(earlier))

	_, err = u.Oncepay(u.ctx, "migrate", "down")
	require.ErrorContains(t, err, "with a kept answer")
	out, err := u.Oncepay(u.ctx, "migrate", "down", "--discard-keys")
	require.NoError(t, err)
	require.Equal(t, "schema version 0\n", out)
	_, err = u.Oncepay(u.ctx, "migrate", "up")
	require.NoError(t, err)
}
