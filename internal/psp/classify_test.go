package psp

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// answering is a provider that always says the same.
func answering(t *testing.T, status int, body string) *Gateway {
	t.Helper()
	server := quiet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", "/v1/charges") // for the redirects
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	return gatewayTo(t, server.URL, patience)
}

func with(old, replacement string) string {
	return strings.Replace(approvedReply, old, replacement, 1)
}

func TestClassifyCharge_TrustsOnlyAClearAnswer(t *testing.T) {
	t.Parallel()
	approved := checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "ch_1"}
	refused := with(`"succeeded"`, `"declined","decline_code":"card_declined"`)
	badToken := `{"error":{"code":"unknown_token"}}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   checkout.GatewayResult
	}{
		"201":                    {201, approvedReply, approved},
		"200":                    {200, approvedReply, approved},
		"a field more":           {201, with("{", `{"livemode":false,`), approved},
		"402":                    {402, refused, declined("card_declined")},
		"unknown token":          {400, badToken, absent(invalidToken)},
		"402 succeeded":          {402, approvedReply, checkout.GatewayResult{}},
		"402 without code":       {402, with("succeeded", "declined"), checkout.GatewayResult{}},
		"402 of another key":     {402, strings.Replace(refused, "key-1", "key-2", 1), checkout.GatewayResult{}},
		"201 declined":           {201, refused, checkout.GatewayResult{}},
		"201 pending":            {201, with("succeeded", "pending"), checkout.GatewayResult{}},
		"201 without status":     {201, with(`,"status":"succeeded"`, ""), checkout.GatewayResult{}},
		"201 without ID":         {201, with("ch_1", ""), checkout.GatewayResult{}},
		"other amount":           {201, with("4200", "4201"), checkout.GatewayResult{}},
		"other currency":         {201, with("USD", "EUR"), checkout.GatewayResult{}},
		"other reference":        {201, with("order-1", "order-2"), checkout.GatewayResult{}},
		"other key":              {201, with("key-1", "key-2"), checkout.GatewayResult{}},
		"a refund":               {201, with("{", `{"charge":"ch_2",`), checkout.GatewayResult{}},
		"amount as text":         {201, with("4200", `"4200"`), checkout.GatewayResult{}},
		"duplicate member":       {201, with("{", `{"status":"succeeded",`), checkout.GatewayResult{}},
		"two objects":            {201, approvedReply + approvedReply, checkout.GatewayResult{}},
		"half an object":         {201, approvedReply[:60], checkout.GatewayResult{}},
		"no body":                {204, "", checkout.GatewayResult{}},
		"null":                   {201, "null", checkout.GatewayResult{}},
		"HTML":                   {502, "<html>Bad Gateway</html>", checkout.GatewayResult{}},
		"oversized":              {201, approvedReply + strings.Repeat(" ", maxReply), checkout.GatewayResult{}},
		"500 with a charge":      {500, approvedReply, checkout.GatewayResult{}},
		"503":                    {503, `{"error":{"code":"busy"}}`, checkout.GatewayResult{}},
		"409":                    {409, `{"error":{"code":"idempotency_key_reused"}}`, checkout.GatewayResult{}},
		"404":                    {404, `{"error":{"code":"not_found"}}`, checkout.GatewayResult{}},
		"422":                    {422, refused, checkout.GatewayResult{}},
		"429":                    {429, `{"error":{"code":"slow_down"}}`, checkout.GatewayResult{}},
		"400 for other reasons":  {400, `{"error":{"code":"invalid_request"}}`, checkout.GatewayResult{}},
		"500 with unknown token": {500, badToken, checkout.GatewayResult{}},
		"307":                    {307, approvedReply, checkout.GatewayResult{}},
		"303":                    {303, approvedReply, checkout.GatewayResult{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := answering(t, c.status, c.body).Charge(t.Context(), chargeWith("tok_visa"))
			if c.want.Outcome == "" {
				requireUnknown(t, got)
				return
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestClassifyRefund_TrustsOnlyAClearAnswer(t *testing.T) {
	t.Parallel()
	good := `{"id":"re_1","idempotency_key":"key-1","charge":"ch_1","amount":4200,"currency":"USD","reference":"refund-1","status":"succeeded"}`
	refused := strings.Replace(good, `"succeeded"`, `"declined","decline_code":"refund_exceeds_charge"`, 1)
	for name, c := range map[string]struct {
		status int
		body   string
		want   checkout.GatewayResult
	}{
		"201":             {201, good, checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "re_1"}},
		"422":             {422, refused, declined("refund_exceeds_charge")},
		"422 unknown":     {422, strings.Replace(refused, "refund_exceeds_charge", "full_moon", 1), checkout.GatewayResult{}},
		"422 of another":  {422, strings.Replace(refused, "refund-1", "refund-2", 1), checkout.GatewayResult{}},
		"422 succeeded":   {422, good, checkout.GatewayResult{}},
		"402":             {402, refused, checkout.GatewayResult{}},
		"other charge":    {201, strings.Replace(good, "ch_1", "ch_2", 1), checkout.GatewayResult{}},
		"other amount":    {201, strings.Replace(good, "4200", "42", 1), checkout.GatewayResult{}},
		"unknown charge":  {404, `{"error":{"code":"unknown_charge"}}`, checkout.GatewayResult{}},
		"unknown token":   {400, `{"error":{"code":"unknown_token"}}`, checkout.GatewayResult{}},
		"malformed reply": {201, "OK", checkout.GatewayResult{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := answering(t, c.status, c.body).Refund(t.Context(), refundOf("ch_1", "key-1", 4200))
			if c.want.Outcome == "" {
				requireUnknown(t, got)
				return
			}
			require.Equal(t, c.want, got)
		})
	}
}
