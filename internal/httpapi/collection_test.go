package httpapi_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
)

// httpRequest is a request of an .http file with its name and the answer that is expected.
var httpRequest = regexp.MustCompile(`(?ms)^# @name (\S+)\n# (\d{3}) ([^\n]*)\n([A-Z]+) \{\{host\}\}(\S+)\n(.*?)(?:\n\n(\{.*?\}))?\n*\z`)

// TestCollection_IsAnsweredAsItSays sends what api/oncepay.http has, in order.
func TestCollection_IsAnsweredAsItSays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	values := []string{"{{account}}", demo, "{{other}}", other, "{{run}}", uuid.NewString()[:8]}
	sent := 0
	for _, block := range strings.Split(collection(t), "\n###") {
		found := httpRequest.FindStringSubmatch(block)
		if found == nil {
			require.NotContains(t, block, "{{host}}", "a request that the test cannot read")
			continue
		}
		fill := strings.NewReplacer(values...)
		require.NotContains(t, fill.Replace(found[5]+found[6]+found[7]), "{{", "it refers to a later request")
		answer := s.do(request{method: found[4], path: fill.Replace(found[5]), body: fill.Replace(found[7]), edit: withFields(fill.Replace(found[6]))})
		require.Equal(t, found[2], strconv.Itoa(answer.status), "%s: %s", found[1], answer.body)
		require.Equal(t, strings.HasSuffix(found[3], "a replay"), answer.header.Get(idempotency.HeaderReplay) == "true", found[1])
		if answer.status < http.StatusMultipleChoices {
			values = append(values, "{{"+found[1]+".response.body.$.id}}", decode[struct{ ID string }](answer).ID)
		}
		sent++
	}
	require.Greater(t, sent, 30)
}

// TestCollection_CallsEveryOperation: also those that are added later.
func TestCollection_CallsEveryOperation(t *testing.T) {
	t.Parallel()
	requests := collection(t)
	forProviders := []string{"receiveProviderEvent", "receiveStripeEvent"} // who sign
	spec, err := api.GetSpec()
	require.NoError(t, err)
	for path, item := range spec.Paths.Map() {
		path = regexp.MustCompile(`\\{[a-z_]+\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/?\n]+`)
		for method, operation := range item.Operations() {
			if slices.Contains(forProviders, operation.OperationID) {
				continue
			}
			require.Regexp(t, `(?m)^`+method+` \{\{host\}\}/v1`+path+`(\?.*)?$`, requests, operation.OperationID)
		}
	}
}

// collection is the file with the requests.
func collection(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../api/oncepay.http")
	require.NoError(t, err)
	return string(text)
}

// withFields sets the header fields of a request in an .http file, one a line.
func withFields(lines string) func(*http.Request) {
	return func(r *http.Request) {
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			r.Header.Set(name, value)
		}
	}
}
