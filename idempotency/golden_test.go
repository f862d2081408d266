package idempotency_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// goldenRequests are requests of earlier builds: method, target, Content-Type and body.
var goldenRequests = [][4]string{
	{"POST", "/orders", "", ""},
	{"POST", "/orders", "", `{"b":[1,2.50,"é"],"a":{"t":1,"c":null}}`},
	{"POST", "/orders", "application/json", `{"b":[1,2.50,"é"],"a":{"t":1,"c":null}}`},
	{"POST", "/orders", "Application/JSON; charset=utf-8", `{"b":[1,2.50,"é"],"a":{"t":1,"c":null}}`},
	{"POST", "/orders", "application/json;", `{"t":1,"a":1}`},
	{"PATCH", "/orders/a%2Fb?x=1&y=2", "application/json", `{"a":1,"a":2}`},
	{"PUT", "/orders/1", "", "a=1&b=2"},
	{"DELETE", "/orders/1", "", ""},
	{"post", "/orders", "", `9007199254740993`},
}

// TestFingerprint_IsThatOfEarlierBuilds: otherwise a retry across an update is refused, although
// the answer is kept. testdata/fingerprints was written by the build before media types counted.
func TestFingerprint_IsThatOfEarlierBuilds(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/fingerprints")
	require.NoError(t, err)
	want := strings.Fields(string(golden))
	require.Len(t, want, 2*len(goldenRequests))
	for i, request := range goldenRequests {
		r := httptest.NewRequestWithContext(t.Context(), request[0], request[1], nil)
		if request[2] != "" {
			r.Header.Set("Content-Type", request[2])
		}
		require.Equal(t, want[2*i], idempotency.FingerprintOf(r, []byte(request[3])).String(), request)
		require.Equal(t, want[2*i+1], idempotency.FingerprintOf(r, []byte(request[3]), "t", "a.t").String(), request)
	}
}
