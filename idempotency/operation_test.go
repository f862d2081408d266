package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestFingerprint_HasTheOperation: what chooses the operation makes another request of equal bytes,
// also if the key is made of the content.
func TestFingerprint_HasTheOperation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second http.Header
		same          bool
	}{
		"patches":                   {mediaType("application/merge-patch+json"), mediaType("application/json-patch+json"), false},
		"a patch and JSON":          {mediaType("application/merge-patch+json"), mediaType("application/json"), false},
		"a patch and none":          {mediaType("application/merge-patch+json"), nil, false},
		"JSON and none":             {mediaType("application/json; charset=utf-8"), nil, true},
		"parameters":                {mediaType("multipart/form-data; boundary=a"), mediaType("Multipart/Form-Data ;boundary=b"), true},
		"malformed":                 {mediaType("text/plain;;="), mediaType("text/plain"), true},
		"malformed, another":        {mediaType("no type"), mediaType("no other"), false},
		"twice":                     {mediaType("application/json"), mediaType("application/json", "text/xml"), false},
		"overrides":                 {http.Header{"X-Http-Method-Override": {"PATCH"}}, http.Header{"X-Http-Method-Override": {"DELETE"}}, false},
		"an override and none":      {http.Header{"X-Http-Method": {"DELETE"}}, nil, false},
		"override headers":          {http.Header{"X-Http-Method": {"PUT"}}, http.Header{"X-Method-Override": {"PUT"}}, false},
		"an override in lower case": {http.Header{"X-Method-Override": {"put"}}, http.Header{"X-Method-Override": {"PUT"}}, true},
	} {
		for kind, policy := range map[string]idempotency.Policy{"": {}, ", key from content": {KeyFrom: &idempotency.Content{Always: true}}} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				b := setup(t, policy, nil)
				send := func(h http.Header) int {
					r := request(t, "key", `{"a":1}`)
					for name, values := range h {
						r.Header[name] = values
					}
					return b.send(r).Code
				}
				require.Equal(t, http.StatusCreated, send(tt.first))
				second, effects := http.StatusCreated, 1
				switch {
				case !tt.same && policy.KeyFrom != nil:
					effects = 2
				case !tt.same:
					second = http.StatusUnprocessableEntity
				}
				require.Equal(t, second, send(tt.second))
				require.Equal(t, effects, b.ran())
			})
		}
	}
}

func mediaType(values ...string) http.Header { return http.Header{"Content-Type": values} }

// TestHost_BelongsToTheRequestWhereItIsNamed: net/http keeps it outside of the headers.
func TestHost_BelongsToTheRequestWhereItIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy idempotency.Policy
		code   int // of a request to another host
		replay string
	}{
		"not named":             {idempotency.Policy{}, http.StatusCreated, "true"},
		"named":                 {idempotency.Policy{Headers: []string{"host"}}, http.StatusUnprocessableEntity, ""},
		"not in the content":    {idempotency.Policy{KeyFrom: &idempotency.Content{Always: true}}, http.StatusCreated, "true"},
		"named for the content": {idempotency.Policy{KeyFrom: &idempotency.Content{Always: true, Headers: []string{"Host"}}}, http.StatusCreated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, tt.policy, nil)
			to := func(host string) *httptest.ResponseRecorder {
				r := request(t, "key", `{"a":1}`)
				r.Host = host
				return b.send(r)
			}
			requireReplay(t, to("a.example"), to("a.example"))
			other := to("b.example")
			require.Equal(t, tt.code, other.Code)
			require.Equal(t, tt.replay, other.Header().Get(idempotency.HeaderReplay))
		})
	}
}
