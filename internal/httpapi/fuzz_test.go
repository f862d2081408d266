package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/cardnumber"
)

// FuzzCursor: a cursor that is accepted is the one that its page had made.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"", "%%%", makeCursor(productCursor, "tee-black"), makeCursor(orderCursor, uuid.NewString()),
		makeCursor(orderCursor, "tee-black"), makeCursor(productCursor, "' OR 1=1 --"), makeCursor(refundCursor, "{00000000-0000-0000-0000-000000000000}")} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if sku, err := afterSKU(&cursor); err == nil {
			require.Equal(t, makeCursor(productCursor, sku), cursor)
		}
		for _, kind := range []string{orderCursor, paymentCursor, refundCursor} {
			if id, err := beforeID(kind, &cursor); err == nil {
				require.Equal(t, makeCursor(kind, id.String()), cursor)
			}
		}
	})
}

// FuzzWebhook: what we have not signed is refused, whatever its headers say, and so is what was
// changed afterwards.
func FuzzWebhook(f *testing.F) {
	signatures, err := newSignatures("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32)))
	require.NoError(f, err)
	s := &Server{signatures: signatures}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	f.Add("evt_1", now, "v1,", []byte(`{"type":"charge.succeeded"}`), 0)
	f.Add("", "", "v1a,x v1,y", []byte{}, 3)
	f.Add("evt.1", "-1", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", []byte("."), 1)
	f.Fuzz(func(t *testing.T, id, at, sent string, body []byte, change int) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {sent}}
		require.Error(t, s.checkSignature(body, header))
		if id == "" || len(body) == 0 {
			return
		}
		signedAt := time.Now()
		good, err := signatures[0].Sign(id, signedAt, body)
		require.NoError(t, err)
		header = http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(signedAt.Unix(), 10)}, "Webhook-Signature": {good}}
		require.NoError(t, s.checkSignature(body, header))
		changed := bytes.Clone(body)
		changed[uint(change)%uint(len(changed))] ^= 1
		require.Error(t, s.checkSignature(changed, header))
	})
}

// FuzzProviderEvent: what an event leaves behind can be stored and logged, whatever is in it.
func FuzzProviderEvent(f *testing.F) {
	for _, data := range []string{"", "null", "[1]", `{"id":null,"amount":10.5}`, `{"idempotency_key":"payment-1","amount":-1,"currency":"USD"}`,
		`{"decline_code":"4242 4242 4242 4242"}`, `{"id":"\u0000"}`, `{"id":"\ud800"}`} {
		f.Add("charge.succeeded", data)
	}
	f.Fuzz(func(t *testing.T, kind, data string) {
		if checkSyntax([]byte(data)) != nil {
			return
		}
		raw := json.RawMessage(data)
		event := providerEventOf("evt_1", api.ProviderEvent{Type: kind, Data: &raw})
		for _, text := range []string{event.Subject, event.Amount.Currency, event.Result.ProviderID, event.Result.DeclineCode} {
			require.LessOrEqual(t, len(text), maxEventText)
			require.True(t, utf8.ValidString(text))
			require.False(t, strings.ContainsRune(text, 0) || cardnumber.Contains(text))
		}
	})
}
