package httpapi_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// signed makes an event's request, as the provider with this secret sends it at that time.
func (s *shop) signed(id, body, secret string, sent time.Time) request {
	s.t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	require.NoError(s.t, err)
	signature, err := signer.Sign(id, sent, []byte(body))
	require.NoError(s.t, err)
	return request{method: "POST", path: "/v1/webhooks/psp", body: body, edit: func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("webhook-id", id)
		r.Header.Set("webhook-timestamp", strconv.FormatInt(sent.Unix(), 10))
		r.Header.Set("webhook-signature", signature)
	}}
}

// tell sends a signed event, and returns its verdict.
func (s *shop) tell(id, body string) string {
	s.t.Helper()
	answer := s.do(s.signed(id, body, webhookSecret, time.Now()))
	require.Equal(s.t, http.StatusOK, answer.status, answer.body)
	return string(decode[api.ProviderEventVerdict](answer).Verdict)
}

func chargeEvent(kind string, payment uuid.UUID, amount int, charge string) string {
	return fmt.Sprintf(`{"type":"charge.%s","timestamp":"2026-11-21T05:00:00Z","data":{"id":%q,"idempotency_key":"payment-%s",`+
		`"amount":%d,"currency":"USD","decline_code":"card_declined","news":[{"a":1}]}}`, kind, charge, payment, amount)
}

// lostPayment is a payment that the provider charged without answering.
func (s *shop) lostPayment(key string) (order api.Order, payment uuid.UUID) {
	s.t.Helper()
	order = s.order(s.customer().ID)
	s.post(payments(order.ID), key, card("tok_charged_no_answer"), 503).problem(503, "payment_outcome_unknown")
	return order, value[uuid.UUID](s, `SELECT id FROM payments WHERE order_id = $1`, order.ID)
}

func TestWebhook_SettlesWhatWasLost(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := newKey()
	order, payment := s.lostPayment(key)
	event := chargeEvent("succeeded", payment, int(order.Total.Amount), "ch_1")
	require.Equal(t, "settled", s.tell("evt_1", event))
	require.Equal(t, api.OrderStatusPaid, decode[api.Order](s.get("/v1/orders/"+order.ID.String())).Status)
	effect := s.effect()

	require.Equal(t, "duplicate", s.tell("evt_1", event))
	require.Equal(t, "confirmed", s.tell("evt_2", event))
	require.Equal(t, "conflicting", s.tell("evt_3", chargeEvent("declined", payment, int(order.Total.Amount), "ch_1")))
	require.Equal(t, "unknown", s.tell("evt_4", chargeEvent("succeeded", uuid.New(), 1, "ch_2")))
	require.Equal(t, "unknown", s.tell("evt_5", `{"type":"payout.created","data":{}}`))
	require.Equal(t, effect, s.effect())

	retry := s.do(request{method: "POST", path: payments(order.ID), key: key, body: card("tok_charged_no_answer"), replica: 1})
	require.Equal(t, http.StatusCreated, retry.status, retry.body)
	require.True(t, retry.replayed())
	require.Equal(t, "/v1/payments/"+payment.String(), retry.header.Get("Location"))
	require.Equal(t, "ch_1", *decode[api.Payment](retry).ProviderChargeID)
	require.Equal(t, retry.body, s.get("/v1/payments/"+payment.String()).body)
	require.Equal(t, effect, s.effect())
	require.Equal(t, 1, s.charges(order.ID))
}

func TestWebhook_NotOfTheProviderIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, payment := s.lostPayment(newKey())
	event := chargeEvent("succeeded", payment, int(order.Total.Amount), "ch_1")
	now := time.Now()
	changed := func(change func(*http.Request)) request {
		r := s.signed("evt_1", event, webhookSecret, now)
		sign := r.edit
		r.edit = func(r *http.Request) { sign(r); change(r) }
		return r
	}
	tampered := s.signed("evt_1", event, webhookSecret, now)
	tampered.body = strings.Replace(event, "succeeded", "declined", 1)
	footprint := s.footprint()
	for name, r := range map[string]request{
		"tampered":          tampered,
		"wrong secret":      s.signed("evt_1", event, "whsec_"+base64.StdEncoding.EncodeToString([]byte("another")), now),
		"empty secret":      s.signed("evt_1", event, "whsec_", now),
		"stale":             s.signed("evt_1", event, webhookSecret, now.Add(-6*time.Minute)),
		"from the future":   s.signed("evt_1", event, webhookSecret, now.Add(6*time.Minute)),
		"another event":     changed(with("webhook-id", "evt_2")),
		"a later time":      changed(with("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))),
		"no ID":             changed(without("webhook-id")),
		"no time":           changed(without("webhook-timestamp")),
		"no signature":      changed(without("webhook-signature")),
		"an API key is not": changed(func(r *http.Request) { r.Header.Del("webhook-signature"); as(demo)(r) }),
	} {
		answer := s.do(r)
		require.Equal(t, http.StatusUnauthorized, answer.status, name)
		answer.problem(401, "invalid_signature")
	}
	require.Equal(t, footprint, s.footprint())
	require.Zero(t, value[int](s, `SELECT count(*) FROM provider_events`))
	require.Equal(t, api.OrderStatusPaying, decode[api.Order](s.get("/v1/orders/"+order.ID.String())).Status)

	for _, body := range []string{`{"data":{}}`, `{"type":1,"data":{}}`, `{"type":"a\u0000"}`, `{"type":null}`, `[]`, `{`, `{} {}`,
		`{"type":"a","type":"b","data":{}}`, `{"type":"4242424242424242"}`} {
		require.Equal(t, http.StatusBadRequest, s.do(s.signed("evt_1", body, webhookSecret, now)).status, body)
	}
	s.do(s.signed("4242424242424242", event, webhookSecret, now)).problem(400, "card_number_refused")
	long := strings.Repeat("e", 256)
	s.do(s.signed(long, event, webhookSecret, now)).problem(400, "invalid_request")
	require.Zero(t, value[int](s, `SELECT count(*) FROM provider_events`))
	require.Equal(t, "settled", s.tell("evt_1", event), "none of them took the event's place")
}

// TestWebhook_TakesWhatTheProviderMaySend has events that our own strict reading of bodies refuses.
func TestWebhook_TakesWhatTheProviderMaySend(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i, body := range []string{
		`{"type":"payout.created"}`,
		`{"type":"payout.created","data":null}`,
		`{"type":"payout.created","timestamp":"today","data":["a"],"fee":0.25,"rate":1e-3,"big":92233720368547758080}`,
		`{"type":"payout.created","memo":"4242424242424242","data":{"memo":"4242 4242 4242 4242","id":7,"amount":10.5,"text":"\u0000"}}`,
		`{"type":"charge.succeeded","data":{"id":null,"idempotency_key":null,"amount":null,"currency":null,"decline_code":null}}`,
		`{"type":"charge.declined","data":{"id":"ch_1","idempotency_key":"4242424242424242"}}`,
		`{"type":"charge.declined","data":{"id":"ch_1","idempotency_key":"a\u0000"}}`,
		`{"type":"charge.declined","data":{"idempotency_key":"` + strings.Repeat("k", 256) + `"}}`,
		`{"type":"a","data":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	} {
		require.Equal(t, "unknown", s.tell(fmt.Sprintf("evt_%d", i), body), body)
		require.Equal(t, "duplicate", s.tell(fmt.Sprintf("evt_%d", i), body), "it was kept")
	}
	require.Zero(t, value[int](s, `SELECT count(*) FROM provider_events WHERE subject <> ''`))

	order, payment := s.lostPayment(newKey())
	about := `{"type":"charge.%s","memo":"4242424242424242","data":{"id":"ch_1","idempotency_key":"payment-%s","amount":%s,` +
		`"currency":"USD","decline_code":null,"fee":0.3}}`
	require.Equal(t, "conflicting", s.tell("evt_half", fmt.Sprintf(about, "succeeded", payment, "10.5")))
	require.Equal(t, "settled", s.tell("evt_whole", fmt.Sprintf(about, "succeeded", payment, strconv.FormatInt(order.Total.Amount, 10))))
	require.Equal(t, api.OrderStatusPaid, decode[api.Order](s.get("/v1/orders/"+order.ID.String())).Status)
}

// TestWebhook_AcceptsTwoSecretsDuringARotation of the provider's, and each one alone afterwards.
func TestWebhook_AcceptsTwoSecretsDuringARotation(t *testing.T) {
	t.Parallel()
	next := "whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret after this one"))
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret of somebody else"))
	s := setup(t, func(c *httpapi.Config) { c.WebhookSecret, c.WebhookSecretPrevious = next, webhookSecret })
	const event = `{"type":"payout.created"}`
	for id, secret := range map[string]string{"evt_1": webhookSecret, "evt_2": next} {
		require.Equal(t, http.StatusOK, s.do(s.signed(id, event, secret, time.Now())).status)
	}
	s.do(s.signed("evt_3", event, other, time.Now())).problem(401, "invalid_signature")
	after := setup(t, func(c *httpapi.Config) { c.WebhookSecret = next })
	after.do(after.signed("evt_1", event, webhookSecret, time.Now())).problem(401, "invalid_signature")
}

func TestWebhook_WithoutASecretIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) { c.WebhookSecret = "" })
	s.do(s.signed("evt_1", `{"type":"a","data":{}}`, "whsec_", time.Now())).problem(401, "invalid_signature")
}

// TestWebhook_UnfinishedBodiesTakeNothingOfEvents: anybody may send them, and as many as a replica
// reads bodies of all accounts.
func TestWebhook_UnfinishedBodiesTakeNothingOfEvents(t *testing.T) {
	t.Parallel()
	s := setupCrowded(t)
	for range 256 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.replicas[0].URL, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprint(conn, "POST /v1/webhooks/psp HTTP/1.1\r\nHost: shop\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 100 Continue\r\n", line, "its body is being read")
	}
	require.Equal(t, "unknown", s.tell("evt_1", `{"type":"payout.created","data":{}}`))
	s.post("/v1/customers", newKey(), `{"name":"Ada","email":"ada@example.com"}`, http.StatusCreated)
}
