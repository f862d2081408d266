package oncecheck

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// shopDocument describes the shop, with an operation for each way in which an example is given, and
// some that have none.
const shopDocument = `
openapi: 3.0.3
info: { title: shop, version: "1" }
servers: [{ url: /v1 }]
paths:
  /orders/{order_id}/payments:
    parameters:
      - { name: order_id, in: path, required: true, schema: { type: string } }
    post:
      operationId: pay
      x-idempotency: { key: required, kept_seconds: 172800, afterwards: refused }
      parameters:
        - { name: X-Idempotency, in: header, required: true, schema: { type: string } }
        - { name: dry, in: query, required: true, schema: { type: boolean, enum: [false] } }
        - { name: X-Region, in: header, required: true, examples: { eu: { value: eu } } }
        - { name: note, in: query, schema: { type: string } }
      requestBody:
        content: { application/json: { examples: { small: { value: { amount: 5 } } } } }
      responses: { default: { description: any } }
  /orders:
    get: { operationId: list, responses: { default: { description: any } } }
    post:
      operationId: order
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } }
      responses: { default: { description: any } }
  /vague:
    post:
      operationId: vague
      requestBody: { required: true, content: { application/json: { schema: { type: object, required: [a], properties: { a: { type: string } } } } } }
      responses: { default: { description: any } }
  /unclear:
    post:
      operationId: unclear
      x-idempotency: { key: required, kept_seconds: 0 }
      responses: { default: { description: any } }
  /typed:
    post:
      operationId: typed
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [cents, rate, gift, id, mail, day, at, site, kind]
              properties:
                cents: { type: integer, minimum: 100 }
                rate: { type: number, maximum: 0.5 }
                gift: { type: boolean }
                id: { type: string, format: uuid }
                mail: { type: string, format: email }
                day: { type: string, format: date }
                at: { type: string, format: date-time }
                site: { type: string, format: uri }
                kind: { anyOf: [{ type: string, enum: [web] }] }
      responses: { default: { description: any } }
  /plain:
    put:
      requestBody: { content: { text/plain: { schema: { type: string, example: x } } } }
      responses: { default: { description: any } }
components:
  schemas:
    Order:
      required: [item, size]
      properties: { size: { type: string, example: M } }
      allOf:
        - { type: object, required: [item], properties: { item: { type: string, example: tee }, gift: { type: boolean } } }
        - { type: object, required: [lines, kind], properties: { lines: { type: array, items: { $ref: "#/components/schemas/Line" } }, kind: { oneOf: [{ type: string, enum: [web] }] } } }
    Line: { type: object, required: [cents], properties: { cents: { type: integer, default: 5 } } }
`

// read returns the settings for the arguments.
func read(t *testing.T, args ...string) *settings {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shopDocument), 0o600))
	s, words, err := parseArguments(args[:len(args)-1], nil)
	require.NoError(t, err)
	require.Empty(t, words)
	require.NoError(t, s.takeWords([]string{file + "#" + args[len(args)-1]}))
	return s
}

func TestOpenAPI_MakesARequestOfExamples(t *testing.T) {
	t.Parallel()
	cfg := read(t, "--server", "http://127.0.0.1:1/v1/", "order").cfg
	require.Equal(t, "POST http://127.0.0.1:1/v1/orders", cfg.Request.Method+" "+cfg.Request.URL)
	require.JSONEq(t, `{"item":"tee","size":"M","lines":[{"cents":5}],"kind":"web"}`, cfg.Request.Body)
	require.Equal(t, "application/json", cfg.Request.Header.Get("Content-Type"))
	require.Nil(t, cfg.Contract)

	cfg = read(t, "--server", "http://127.0.0.1:1", "--parameter", "order_id=a/b", "-H", "Authorization: me", "pay").cfg
	require.Equal(t, "http://127.0.0.1:1/orders/a%2Fb/payments?dry=false", cfg.Request.URL)
	require.JSONEq(t, `{"amount":5}`, cfg.Request.Body)
	require.Equal(t, "eu", cfg.Request.Header.Get("X-Region"))
	require.Equal(t, "me", cfg.Request.Header.Get("Authorization"))
	require.Equal(t, "X-Idempotency", cfg.KeyHeader)
	require.Equal(t, &Contract{Key: "required", Kept: 172800, Afterwards: "refused"}, cfg.Contract)

	cfg = read(t, "--server", "http://127.0.0.1:1", "-d", `{"a":1}`, "vague").cfg
	require.JSONEq(t, `{"a":1}`, cfg.Request.Body, "curl's body is taken instead of the examples")
}

func TestOpenAPI_NeedsNoExampleOfAType(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"cents":100,"rate":0.5,"gift":false,"id":"4be3ec1f-97ad-4b3f-a00a-c4b5b9a1e5d7","mail":"{{unique}}@example.com",
		"day":"2030-01-01","at":"2030-01-01T00:00:00Z","site":"https://example.com/","kind":"web"}`,
		read(t, "--server", "http://127.0.0.1:1", "typed").cfg.Request.Body)
}

func TestOpenAPI_IsReadFromAURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, shopDocument) }))
	t.Cleanup(server.Close)
	s, _, err := parseArguments(nil, nil)
	require.NoError(t, err)
	require.NoError(t, s.takeWords([]string{server.URL + "/docs/openapi#order"}))
	require.Equal(t, server.URL+"/v1/orders", s.cfg.Request.URL, "the document's servers are relative to its own URL")
	err = s.takeWords([]string{"http://127.0.0.1:1/openapi#order"})
	require.ErrorContains(t, err, "read the OpenAPI document http://127.0.0.1:1/openapi")
}

func TestOpenAPI_IsCheckedAsEveryOtherRequest(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shopDocument), 0o600))
	status, out, errOut := call(t, "", "--server", url, "--only", "replay,retention", "--key-header", "Idempotency-Key", file+"#order")
	require.Equal(t, 0, status, errOut)
	require.Contains(t, out, "1 hold, 0 broken, 1 not decided", "the operation has no x-idempotency")
}

func TestRetention_BelievesNoContract(t *testing.T) {
	t.Parallel()
	run := func(flaw string, published *Contract) Verdict {
		_, url := newShop(t, flaw)
		report, err := Run(t.Context(), Config{
			Request: Request{URL: url, Body: "{}"}, Only: []string{"retention"}, Contract: published, Rate: 10_000,
		})
		require.NoError(t, err)
		return report.Verdicts[0]
	}
	require.Equal(t, NotDecided, run("", nil).Outcome)
	v := run("no-key", &Contract{Key: "required", Kept: 24 * 60 * 60})
	require.Equal(t, Broken, v.Outcome)
	require.Contains(t, v.Reason, "a key is required")
	v = run("", &Contract{Key: "optional", Kept: 24 * 60 * 60})
	require.Equal(t, Broken, v.Outcome)
	require.Contains(t, v.Reason, "a key is optional")
	v = run("no-key", &Contract{Key: "optional", Kept: 24 * 60 * 60})
	require.Equal(t, NotDecided, v.Outcome)
	require.Contains(t, v.Reason, "kept for 24h0m0s")
}

func TestRetention_LooksAtWhatComesAfterwards(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]Outcome{"refused": Broken, "executed": Holds, "": Holds} {
		s, url := newShop(t, "survives")
		cfg := Config{Request: Request{URL: url, Body: "{}"}, Contract: &Contract{Key: "required", Kept: 1, Afterwards: says}}
		require.NoError(t, cfg.check())
		v := newProbe(t.Context(), &cfg).check(Rule{check: func(p *probe) {
			r := p.fresh()
			first := p.send("the request", r)
			require.NoError(t, s.forget(p.ctx))
			p.afterwards(r, first, 0)
		}})
		require.Equal(t, want, v.Outcome, says)
	}
}

func TestContract_HasThreeMembers(t *testing.T) {
	t.Parallel()
	for _, wrong := range []map[string]any{
		{"key": "required", "kept_seconds": 0}, {"key": "required", "kept_seconds": "x"}, {"key": "maybe", "kept_seconds": 5},
		{"key": "required", "kept_seconds": 5, "afterwards": "replayed"},
	} {
		_, err := contractOf(&openapi3.Operation{Extensions: map[string]any{extension: wrong}})
		require.ErrorContains(t, err, "x-idempotency needs")
		require.NotContains(t, err.Error(), "Go ")
	}
}
