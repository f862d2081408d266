package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/psp/stripe/stripetest"
	"github.com/oncepay/oncepay/internal/testenv"
)

const stripeSecret = "whsec_published_in_a_test"

// stripeConfig is a configuration for Stripe at our server, behind the handler if it is not nil.
// The reconciler does not look before the test ends.
func stripeConfig(t *testing.T, provider http.Handler) Config {
	t.Helper()
	web := httptest.NewServer(provider)
	t.Cleanup(web.Close)
	cfg := configFor(t, testenv.Postgres(t), testenv.Redis(t))
	cfg.Provider, cfg.PSPURL, cfg.StripeKey, cfg.StripeWebhookSecret = ProviderStripe, web.URL, "sk_test_1", stripeSecret
	cfg.ReconcileInterval = time.Hour
	require.NoError(t, cfg.RequireServe())
	return cfg
}

// hear sends an event as Stripe does.
func (r *testReplica) hear(body []byte, header http.Header) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.Addr()+"/v1/webhooks/stripe", strings.NewReader(string(body)))
	if err != nil {
		return answer{body: err.Error()}
	}
	req.Header = header
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{status: res.StatusCode, header: res.Header, body: string(text)}
}

// verdict is that on a signed event.
func (r *testReplica) verdict(body []byte) string {
	r.t.Helper()
	got := r.hear(body, stripetest.Sign(body, stripeSecret, time.Now()))
	require.Equal(r.t, http.StatusOK, got.status, got.body)
	return got.field(r.t, "verdict")
}

func (r *testReplica) status(path string) string {
	r.t.Helper()
	return r.call(http.MethodGet, path, "", "").field(r.t, "status")
}

// TestStripe_EventsSettleWhatWasLost pays an order whose charge is made and never answered, and
// refunds it. Events arrive more than once and in another order than they were made in.
func TestStripe_EventsSettleWhatWasLost(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	r := serveSeeded(t, stripeConfig(t, server))
	order := r.placeOrder()
	pay := func() answer {
		return r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("pm_lost"))
	}
	lost := pay()
	require.Equal(t, http.StatusServiceUnavailable, lost.status, lost.body)
	require.Equal(t, "payment_outcome_unknown", lost.field(t, "code"))
	require.Equal(t, "paying", r.status("/v1/orders/"+order))

	succeeded := server.Event("payment_intent.succeeded")
	forged := []byte(strings.Replace(string(succeeded), "pi_1", "pi_2", 1))
	refused := r.hear(forged, stripetest.Sign(succeeded, stripeSecret, time.Now()))
	require.Equal(t, http.StatusUnauthorized, refused.status, refused.body)
	require.Equal(t, "invalid_signature", refused.field(t, "code"))
	require.Equal(t, "paying", r.status("/v1/orders/"+order))

	verdicts := make(chan string, 8)
	var group sync.WaitGroup
	for range cap(verdicts) {
		group.Go(func() {
			got := r.hear(succeeded, stripetest.Sign(succeeded, stripeSecret, time.Now()))
			verdicts <- strings.TrimSpace(got.body)
		})
	}
	group.Wait()
	close(verdicts)
	seen := map[string]int{}
	for v := range verdicts {
		seen[v]++
	}
	require.Equal(t, map[string]int{`{"verdict":"settled"}`: 1, `{"verdict":"duplicate"}`: cap(verdicts) - 1}, seen)
	require.Equal(t, "paid", r.status("/v1/orders/"+order))
	require.Equal(t, "unknown", r.verdict(server.Event("payment_intent.created")), "it was made before")

	retry := pay()
	require.Equal(t, http.StatusCreated, retry.status, retry.body)
	require.Equal(t, "true", retry.header.Get("X-Idempotent-Replay"))
	require.Equal(t, "pi_1", retry.field(t, "provider_charge_id"))
	require.Equal(t, []string{"POST /v1/payment_intents"}, server.Asked(), "nothing was sent again")

	refunds := "/v1/payments/" + retry.field(t, "id") + "/refunds"
	refund := r.call(http.MethodPost, refunds, "refund", `{}`)
	require.Equal(t, http.StatusCreated, refund.status, refund.body)
	require.Equal(t, "refunded", r.status("/v1/orders/"+order))
	require.Equal(t, "confirmed", r.verdict(server.Event("refund.created")))

	server.Change("pi_1", stripetest.Object{"status": "canceled"}, "payment_intent.canceled")
	server.Change("re_1", stripetest.Object{"status": "failed", "failure_reason": "expired_or_canceled_card"}, "refund.failed")
	for _, kind := range []string{"payment_intent.canceled", "refund.failed"} {
		require.Equal(t, "conflicting", r.verdict(server.Event(kind)))
		require.Equal(t, "duplicate", r.verdict(server.Event(kind)))
	}
	conflicts := r.logs.lines(t, "verdict", "conflicting")
	require.Len(t, conflicts, 2)
	require.Equal(t, []any{"ERROR", "ERROR"}, []any{conflicts[0]["level"], conflicts[1]["level"]})
	require.Equal(t, []any{"pi_1", "re_1"}, []any{conflicts[0]["provider_id"], conflicts[1]["provider_id"]})
	require.Equal(t, "refunded", r.status("/v1/orders/"+order))
	require.Equal(t, 1, count(t, r.servers.pool, "payments"))
	require.Equal(t, 1, count(t, r.servers.pool, "refunds"))
}

// TestStripe_AnEventMayOvertakeTheAnswer to the request that it is about.
func TestStripe_AnEventMayOvertakeTheAnswer(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	var r *testReplica
	r = serveSeeded(t, stripeConfig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		kept := httptest.NewRecorder()
		server.ServeHTTP(kept, req)
		event := server.Event("payment_intent.succeeded")
		if got := r.hear(event, stripetest.Sign(event, stripeSecret, time.Now())); !strings.Contains(got.body, `"settled"`) {
			t.Errorf("event: %d %s", got.status, got.body)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(kept.Body.Bytes())
	})))
	order := r.placeOrder()
	paid := r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("pm_visa"))
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	require.Equal(t, "pi_1", paid.field(t, "provider_charge_id"))
	require.Equal(t, "paid", r.status("/v1/orders/"+order))
	require.Equal(t, 1, count(t, r.servers.pool, "ledger_transactions"))
}

// TestStripe_LooksUpWhatItHas by its ID: an answer that is kept under the key stays "processing".
func TestStripe_LooksUpWhatItHas(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	r := serveSeeded(t, stripeConfig(t, server))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	for range 2 {
		require.Equal(t, "payment_outcome_unknown", r.call(http.MethodPost, path, "pay", cardPayment("pm_processing")).field(t, "code"))
	}
	require.Equal(t, "unknown", r.verdict(server.Event("payment_intent.processing")))
	server.Change("pi_1", stripetest.Object{"status": stripetest.Succeeded, "amount_received": server.Amount("pi_1")}, "payment_intent.succeeded")
	paid := r.call(http.MethodPost, path, "pay", cardPayment("pm_processing"))
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	require.Equal(t, []string{"POST /v1/payment_intents", "GET /v1/payment_intents/pi_1", "GET /v1/payment_intents/pi_1"}, server.Asked())
	require.Equal(t, "confirmed", r.verdict(server.Event("payment_intent.succeeded")))
}

// TestStripe_RefusesAKeyThatIsAtWork: the client comes back while its first request, whose
// connection is gone, is at work at Stripe.
func TestStripe_RefusesAKeyThatIsAtWork(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	begun, finish, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server.Working = func() { close(begun); <-finish }
	var first sync.Once
	r := serveSeeded(t, stripeConfig(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		first.Do(func() {
			if err := req.ParseForm(); err != nil {
				t.Errorf("form: %v", err)
			}
			go func() {
				defer close(finished)
				server.ServeHTTP(httptest.NewRecorder(), req.WithContext(context.Background()))
			}()
			<-begun
			panic(http.ErrAbortHandler)
		})
		server.ServeHTTP(w, req)
	})))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	for range 3 {
		require.Equal(t, "payment_outcome_unknown", r.call(http.MethodPost, path, "pay", cardPayment("pm_visa")).field(t, "code"))
	}
	require.Contains(t, r.logs.String(), "idempotency_key_in_use")
	close(finish)
	<-finished
	paid := r.call(http.MethodPost, path, "pay", cardPayment("pm_visa"))
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	charges, _ := server.Moved()
	require.Equal(t, 1, charges)
}

// TestStripe_RefusesEventsOfOthers names the cause to whoever has set the endpoint up wrongly, and
// keeps nothing.
func TestStripe_RefusesEventsOfOthers(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	r := serveSeeded(t, stripeConfig(t, server))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	require.Equal(t, http.StatusServiceUnavailable, r.call(http.MethodPost, path, "pay", cardPayment("pm_lost")).status)
	event := string(server.Event("payment_intent.succeeded"))
	changed := func(mode string) string {
		return strings.Replace(event, `"livemode":false,"object":"event"`, mode+`,"object":"event"`, 1)
	}
	for name, c := range map[string]struct {
		body, secret, code, detail string
		sent                       time.Time
		status                     int
	}{
		"another endpoint's secret": {event, "whsec_of_another_account", "invalid_signature", "not signed with our secret", time.Now(), 401},
		"too old":                   {event, stripeSecret, "invalid_signature", "older than five minutes", time.Now().Add(-6 * time.Minute), 401},
		"a connected account":       {changed(`"livemode":false,"account":"acct_2"`), stripeSecret, "invalid_request", "about another account of Stripe", time.Now(), 400},
		"live mode":                 {changed(`"livemode":true`), stripeSecret, "invalid_request", "of the other mode of Stripe", time.Now(), 400},
	} {
		require.True(t, name == "too old" || c.secret != stripeSecret || c.body != event, name)
		got := r.hear([]byte(c.body), stripetest.Sign([]byte(c.body), c.secret, c.sent))
		require.Equal(t, c.status, got.status, "%s: %s", name, got.body)
		require.Equal(t, c.code, got.field(t, "code"), name)
		require.Contains(t, got.field(t, "detail"), c.detail, name)
	}
	require.Zero(t, count(t, r.servers.pool, "provider_events"))
	require.Equal(t, "settled", r.verdict([]byte(event)), "none of them took its place")
}
