package pspsim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCharge_BadInputChargesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := chargeOf("tok_visa")
	for name, c := range map[string]struct {
		key, body string
		status    int
		code      string
	}{
		"no key":            {"", good, 400, "invalid_request"},
		"long key":          {strings.Repeat("k", 256), good, 400, "invalid_request"},
		"unknown token":     {"k", chargeOf("tok_amex"), 400, "unknown_token"},
		"no body":           {"k", "", 400, "invalid_request"},
		"not JSON":          {"k", "amount=4200", 400, "invalid_request"},
		"array":             {"k", "[" + good + "]", 400, "invalid_request"},
		"trailing data":     {"k", good + "{}", 400, "invalid_request"},
		"unknown member":    {"k", strings.Replace(good, "{", `{"tip":1,`, 1), 400, "invalid_request"},
		"duplicate member":  {"k", strings.Replace(good, "{", `{"amount":1,`, 1), 400, "invalid_request"},
		"upper-case member": {"k", strings.Replace(good, "amount", "Amount", 1), 400, "invalid_request"},
		"amount as text":    {"k", strings.Replace(good, "4200", `"4200"`, 1), 400, "invalid_request"},
		"fraction":          {"k", strings.Replace(good, "4200", "42.5", 1), 400, "invalid_request"},
		"overflow":          {"k", strings.Replace(good, "4200", "9223372036854775808", 1), 400, "invalid_request"},
		"zero":              {"k", strings.Replace(good, "4200", "0", 1), 400, "invalid_request"},
		"negative":          {"k", strings.Replace(good, "4200", "-1", 1), 400, "invalid_request"},
		"currency":          {"k", strings.Replace(good, "USD", "usd", 1), 400, "invalid_request"},
		"long currency":     {"k", strings.Replace(good, "USD", "USDT", 1), 400, "invalid_request"},
		"no reference":      {"k", strings.Replace(good, "order-1", "", 1), 400, "invalid_request"},
		"too large":         {"k", good + strings.Repeat(" ", 64<<10), 400, "invalid_request"},
	} {
		status, a := b.mustPost("/v1/charges", c.key, c.body)
		require.Equal(t, c.status, status, name)
		require.Equal(t, c.code, a.Problem.Code, name)
		require.NotEmpty(t, a.Problem.Message, name)
	}
	require.Empty(t, b.list("/v1/charges"))
	status, a := b.charge("k", "tok_visa")
	require.Equal(t, http.StatusCreated, status, "bad input burned no key")
	require.Equal(t, 1, a.Attempts)
}

func TestCharge_TwoKeysAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/v1/charges", strings.NewReader(chargeOf("tok_visa")))
	require.NoError(t, err)
	request.Header["Idempotency-Key"] = []string{"one", "two"}
	response, err := b.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func TestServer_RefusesUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, status := range map[string]int{"/v1/payouts": http.StatusNotFound, "/healthz": http.StatusMethodNotAllowed} {
		response, err := b.client.Post(b.url+path, "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, status, response.StatusCode, path)
	}
}

func TestJournal_FailureIsNeverAnsweredAsSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.sim.ledger.journal.Close())
	for range 2 {
		status, a := b.charge("key-1", "tok_visa")
		require.Equal(t, http.StatusInternalServerError, status)
		require.Equal(t, "journal_failed", a.Problem.Code)
	}
	require.Empty(t, b.list("/v1/charges"))
	require.Empty(t, b.crash().list("/v1/charges"))
}
