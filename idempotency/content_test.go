package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func TestContent_MakesOneKeyOfEqualContent(t *testing.T) {
	t.Parallel()
	type transfer struct {
		To    string `json:"to"`
		Cents int    `json:"cents"`
		Note  string `json:"note"`
	}
	ada := transfer{To: "ada", Cents: 500, Note: "x"}
	for name, tt := range map[string]struct {
		content idempotency.Content
		other   any
		equal   bool
	}{
		"the same, written in another way":   {idempotency.Content{}, []byte(`{"note":"x", "to":"\u0061da","cents":5e2}`), true},
		"another value":                      {idempotency.Content{}, transfer{"ada", 501, "x"}, false},
		"another value that is chosen":       {idempotency.Content{Members: []string{"to", "cents"}}, transfer{"bob", 500, "x"}, false},
		"another value that is not chosen":   {idempotency.Content{Members: []string{"to", "cents"}}, transfer{"ada", 500, "y"}, true},
		"another value that is excluded":     {idempotency.Content{Excluded: []string{"note"}}, transfer{"ada", 500, "y"}, true},
		"values that change places":          {idempotency.Content{Members: []string{"to", "note"}}, transfer{"x", 500, "ada"}, false},
		"no JSON":                            {idempotency.Content{}, []byte("to=ada"), false},
		"excluded inside of a chosen member": {idempotency.Content{Members: []string{"to"}, Excluded: []string{"note"}}, []byte(`{"to":"ada","note":1}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := tt.content.Key(ada)
			require.NoError(t, err)
			b, err := tt.content.Key(tt.other)
			require.NoError(t, err)
			require.Equal(t, tt.equal, a == b)
		})
	}
}

func TestContent_NamesItsMembers(t *testing.T) {
	t.Parallel()
	a, err := idempotency.Content{Members: []string{"from"}}.Key(map[string]string{"from": "ada", "to": "ada"})
	require.NoError(t, err)
	b, err := idempotency.Content{Members: []string{"to"}}.Key(map[string]string{"from": "ada", "to": "ada"})
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}

// TestContent_NeedsAllThatItNames: a misspelled name must not make all requests equal.
func TestContent_NeedsAllThatItNames(t *testing.T) {
	t.Parallel()
	for request, content := range map[string]idempotency.Content{
		`{"amount":1}`:              {Members: []string{"amounts"}},
		`{"amount":null}`:           {Members: []string{"amount"}},
		`[1]`:                       {Members: []string{"amount"}},
		`{"amount":1,"amount":2}`:   {Members: []string{"amount"}},
		`{"amount":{},"other":1}`:   {Members: []string{"amount"}, Excluded: []string{"amount"}},
		`{"amount":1,"header":"x"}`: {Headers: []string{"header"}},
	} {
		_, err := content.Key([]byte(request))
		require.Error(t, err, request)
	}
	_, err := idempotency.Content{}.Key(func() {})
	require.Error(t, err)
}

// contentRequest is request without a key, with something that differs between tries.
func contentRequest(t *testing.T, target, body, header string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	if header != "" {
		r.Header.Set("X-Basket", header)
	}
	return r
}

func TestKeyFrom_AnswersEqualRequestsOnce(t *testing.T) {
	t.Parallel()
	content := &idempotency.Content{Members: []string{"sku"}, Headers: []string{"x-basket"}, Query: []string{"shop"}}
	b := setup(t, idempotency.Policy{Required: true, KeyFrom: content}, nil)
	first := b.send(contentRequest(t, "/orders?shop=1&try=1", `{"sku":"tee","sent":1}`, "b-1"))
	require.Equal(t, http.StatusCreated, first.Code)
	requireReplay(t, first, b.send(contentRequest(t, "/orders?shop=1&try=2", `{"sent":2,"sku":"tee"}`, "b-1")))
	require.True(t, strings.HasPrefix(b.lastCheck().Key, "content-"))
	for name, r := range map[string]*http.Request{
		"path":   contentRequest(t, "/refunds?shop=1", `{"sku":"tee"}`, "b-1"),
		"query":  contentRequest(t, "/orders?shop=2", `{"sku":"tee"}`, "b-1"),
		"member": contentRequest(t, "/orders?shop=1", `{"sku":"mug"}`, "b-1"),
		"header": contentRequest(t, "/orders?shop=1", `{"sku":"tee"}`, "b-2"),
	} {
		require.Equal(t, http.StatusCreated, b.send(r).Code, name)
		require.Equal(t, idempotency.ResultAcquired, b.lastCheck().Result, name)
	}
	require.Equal(t, 5, b.ran())
	for name, r := range map[string]*http.Request{
		"no query":    contentRequest(t, "/orders", `{"sku":"tee"}`, "b-1"),
		"no member":   contentRequest(t, "/orders?shop=1", `{}`, "b-1"),
		"empty query": contentRequest(t, "/orders?shop=", `{"sku":"tee"}`, "b-1"),
		"null":        contentRequest(t, "/orders?shop=1", `{"sku":null}`, "b-1"),
		"no header":   contentRequest(t, "/orders?shop=1", `{"sku":"tee"}`, ""),
	} {
		w := b.send(r)
		requireProblem(t, w, http.StatusBadRequest, idempotency.CodeKeyMissing)
		require.Contains(t, w.Body.String(), "made of the request's content: the request has no value for the", name)
		require.Equal(t, idempotency.ResultMissing, b.lastCheck().Result, name)
		require.ErrorContains(t, b.lastCheck().Err, "the request has no", name)
	}
}

func TestKeyFrom_LeavesTheClientsKey(t *testing.T) {
	t.Parallel()
	for always, runs := range map[bool]int{false: 2, true: 1} {
		b := setup(t, idempotency.Policy{KeyFrom: &idempotency.Content{Always: always}}, nil)
		for _, key := range []string{"key-1", "key-2"} {
			require.Equal(t, http.StatusCreated, b.post(t, key, `{"sku":"tee"}`).Code)
		}
		require.Equal(t, runs, b.ran(), "a new key with each try: %t", always)
	}
}

// TestKeyFrom_ComparesTheHeadersOfThePolicy, although they are not a part of the key.
func TestKeyFrom_ComparesTheHeadersOfThePolicy(t *testing.T) {
	t.Parallel()
	content := &idempotency.Content{Members: []string{"sku"}}
	b := setup(t, idempotency.Policy{KeyFrom: content, Headers: []string{"X-Basket"}}, nil)
	first := b.send(contentRequest(t, "/orders", `{"sku":"tee"}`, "b-1"))
	require.Equal(t, http.StatusCreated, first.Code)
	requireReplay(t, first, b.send(contentRequest(t, "/orders", `{"sku":"tee"}`, "b-1")))
	require.Equal(t, http.StatusUnprocessableEntity, b.send(contentRequest(t, "/orders", `{"sku":"tee"}`, "b-2")).Code)
	require.Equal(t, 1, b.ran())
}
