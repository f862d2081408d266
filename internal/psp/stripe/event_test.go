package stripe

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp/stripe/stripetest"
)

const secret = "whsec_published_in_a_test"

func TestVerify(t *testing.T) {
	t.Parallel()
	body, now, events := []byte(`{"id":"evt_1"}`), time.Now(), Events{Secret: secret}
	require.NoError(t, events.Verify(body, stripetest.Sign(body, secret, now)))
	for name, header := range map[string]http.Header{
		"another secret": stripetest.Sign(body, "whsec_other", now),
		"no signature":   {},
		"another body":   stripetest.Sign([]byte(string(body)+" "), secret, now),
		"six minutes":    stripetest.Sign(body, secret, now.Add(-6*time.Minute)),
	} {
		require.ErrorIs(t, events.Verify(body, header), ErrUnsigned, name)
	}
	require.ErrorIs(t, Events{}.Verify(body, stripetest.Sign(body, "", now)), ErrUnsigned, "an empty secret is none")
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"id":"evt_1","object":"event","type":%q,"livemode":false,"data":{"object":%s}}`, kind, object)
}

func intentJSON(status, more string) string {
	return fmt.Sprintf(`{"id":"pi_1","object":"payment_intent","status":%q,"amount":4200,"currency":"usd","metadata":{"oncepay_key":"payment-1","oncepay_reference":"order-1"}%s}`,
		status, more)
}

func refundJSON(status string) string {
	return fmt.Sprintf(`{"id":"re_1","object":"refund","status":%q,"amount":1200,"currency":"usd","payment_intent":"pi_1","metadata":{"oncepay_key":"refund-1","oncepay_reference":"refund-1"}}`, status)
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		object     string
		outcome    checkout.Outcome
		id, code   string
	}{
		{"charged", event("payment_intent.succeeded", intentJSON("succeeded", `,"amount_received":4200`)), checkout.ObjectCharge, checkout.OutcomeApproved, "pi_1", ""},
		{"charged in part", event("payment_intent.succeeded", intentJSON("succeeded", `,"amount_received":4199`)), checkout.ObjectCharge, checkout.OutcomeUnknown, "pi_1", ""},
		{"declined", event("payment_intent.payment_failed", intentJSON("requires_payment_method", `,"last_payment_error":{"code":"card_declined","decline_code":"lost_card"}`)),
			checkout.ObjectCharge, checkout.OutcomeDeclined, "pi_1", "lost_card"},
		{"canceled by a person", event("payment_intent.canceled", intentJSON("canceled", "")), checkout.ObjectCharge, checkout.OutcomeDeclined, "pi_1", "canceled"},
		{"processing", event("payment_intent.processing", intentJSON("processing", "")), checkout.ObjectCharge, checkout.OutcomeUnknown, "pi_1", ""},
		{"refunded", event("refund.updated", refundJSON("succeeded")), checkout.ObjectRefund, checkout.OutcomeApproved, "re_1", ""},
		{"refund waits", event("refund.created", refundJSON("pending")), checkout.ObjectRefund, checkout.OutcomeUnknown, "re_1", ""},
		{"refund failed", event("refund.failed", refundJSON("failed")), checkout.ObjectRefund, checkout.OutcomeDeclined, "re_1", "failed"},
		{"another type", event("charge.dispute.created", `{"id":"dp_1","amount":null,"rate":0.5}`), "", checkout.OutcomeUnknown, "", ""},
		{"not ours", event("payment_intent.succeeded", `{"id":"pi_2","status":"succeeded","amount":1,"amount_received":1,"currency":"eur","metadata":{}}`),
			checkout.ObjectCharge, checkout.OutcomeApproved, "pi_2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			read, err := Events{}.Read([]byte(c.body))
			require.NoError(t, err)
			require.Equal(t, "evt_1", read.ID)
			require.Equal(t, c.object, read.Object)
			require.Equal(t, c.outcome, read.Result.Outcome, read.Result.Cause)
			require.Equal(t, c.id, read.Result.ProviderID)
			require.Equal(t, c.code, read.Result.DeclineCode)
		})
	}
}

func TestRead_IsAboutOurRequest(t *testing.T) {
	t.Parallel()
	read, err := Events{}.Read([]byte(event("payment_intent.succeeded", intentJSON("succeeded", `,"amount_received":4200`))))
	require.NoError(t, err)
	require.Equal(t, "payment-1", read.Subject)
	require.Equal(t, checkout.Money{Amount: 4200, Currency: "USD"}, read.Amount)
}

func TestRead_Refuses(t *testing.T) {
	t.Parallel()
	_, err := Events{}.Read([]byte(`{"id":"evt_1","type":"a","livemode":true}`))
	require.ErrorIs(t, err, ErrOtherMode)
	_, err = Events{Live: true}.Read([]byte(`{"id":"evt_1","type":"a","livemode":false}`))
	require.ErrorIs(t, err, ErrOtherMode)
	_, err = Events{}.Read([]byte(`{"id":"evt_1","type":"a","account":"acct_2"}`))
	require.ErrorIs(t, err, ErrOtherAccount)
	for _, body := range []string{``, `[]`, `{`, `{"type":"a"}`, `{"id":"evt_1"}`, event("refund.updated", `"re_1"`) + "x", event("payment_intent.succeeded", `{"amount":"x"}`)} {
		_, err = Events{}.Read([]byte(body))
		require.Error(t, err, body)
	}
}
