package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency"
)

// request is one generated request.
type request struct {
	route          *routers.Route // nil: the path does not exist
	valid          bool           // openapi.yaml allows it
	change         string         // what makes it invalid
	endpoint, base string
	method, target string // the target is the path and the query
	header         http.Header
	body           []byte
	raw            []byte // nil: it is sent by an HTTP client
}

// generator makes the requests of one sender. Not safe for concurrent use.
type generator struct {
	routes []*routers.Route
	cfg    Config
	random *rand.Rand
	number int
}

// request makes the n-th request: a third of them is valid, the others have one thing wrong.
func (g *generator) request(n int) request {
	g.number = n
	names := sortedKeys(g.cfg.Endpoints)
	r := request{endpoint: names[n%len(names)], valid: true, change: "valid"}
	r.base = g.cfg.Endpoints[r.endpoint]
	if g.chance(rawShare) {
		return g.rawRequest(r)
	}
	r.route = g.routes[g.random.IntN(len(g.routes))]
	r.method = r.route.Method
	r.target = basePath + r.route.Path
	r.header = http.Header{"Authorization": {"Bearer " + g.cfg.APIKey}}
	for _, p := range r.route.Operation.Parameters {
		g.parameter(&r, p.Value)
	}
	if r.route.Operation.RequestBody != nil {
		schema := r.route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
		r.body, _ = json.Marshal(g.value("", schema)) // strings, numbers, maps and slices
		r.header.Set("Content-Type", "application/json")
	}
	if r.route.Path == "/webhooks/psp" {
		r.header.Set("webhook-timestamp", "1700000000")
		r.header.Set("webhook-signature", "v1,bm9uZQ==")
		r.valid = false // only the provider can sign one
	}
	if !g.chance(35) {
		r.valid = false
		g.invalidate(&r)
	}
	return r
}

// parameter fills in one of the path, or adds one to the query or the header, the optional ones
// half of the time.
func (g *generator) parameter(r *request, p *openapi3.Parameter) {
	if !p.Required && g.chance(50) {
		return
	}
	value := fmt.Sprint(g.value(p.Name, p.Schema.Value))
	switch p.In {
	case openapi3.ParameterInPath:
		r.target = strings.ReplaceAll(r.target, "{"+p.Name+"}", url.PathEscape(value))
	case openapi3.ParameterInHeader:
		r.header.Set(p.Name, value)
	case openapi3.ParameterInQuery:
		separator := "?"
		if strings.Contains(r.target, "?") {
			separator = "&"
		}
		r.target += separator + p.Name + "=" + url.QueryEscape(value)
		r.valid = r.valid && p.Name != "cursor" // only the API makes valid ones
	}
}

// value makes one that the schema allows; name is that of the member or parameter.
func (g *generator) value(name string, schema *openapi3.Schema) any {
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[g.random.IntN(len(schema.Enum))]
	case schema.Type.Is(openapi3.TypeString):
		return g.text(name, schema)
	case schema.Type.Is(openapi3.TypeInteger): // small, so that sums stay within their own bounds
		smallest, largest := int64(0), int64(100)
		if schema.Min != nil {
			smallest = int64(*schema.Min)
		}
		if schema.Max != nil {
			largest = min(largest, int64(*schema.Max))
		}
		return smallest + g.random.Int64N(largest-smallest+1)
	case schema.Type.Is(openapi3.TypeArray):
		list := make([]any, max(1, schema.MinItems)) // one: items of an order have different SKUs
		for i := range list {
			list[i] = g.value("", schema.Items.Value)
		}
		return list
	case schema.Type.Is(openapi3.TypeObject):
		return g.object(schema)
	}
	return nil
}

// text makes one that exists where it has to, or of a form that openapi.yaml describes by a pattern,
// or letters.
func (g *generator) text(name string, schema *openapi3.Schema) string {
	number := fmt.Sprintf("generated-s%dn%d", g.cfg.Seed, g.number) // digits alone could be a card number
	known := map[string]string{
		"customer_id": g.pick(append([]string{uuid.NewString()}, g.cfg.Customers...)...), "sku": g.pick(g.cfg.SKUs...), "email": number + "@example.com", "token": "tok_visa",
		"currency": "USD", "country": "DE", idempotency.HeaderKey: number, "If-Match": fmt.Sprintf(`"%d"`, 1+g.random.IntN(9)),
		"uuid": uuid.NewString(), "date-time": "2026-11-21T12:00:00Z",
	}
	if text := cmp.Or(known[name], known[schema.Format]); text != "" {
		return text
	}
	longest := uint64(40)
	if schema.MaxLength != nil {
		longest = min(longest, *schema.MaxLength)
	}
	letters := []rune("abcdefghijklmnopqrstuvwxyzäöü")
	if strings.Contains(schema.Pattern, "~") { // the last printable ASCII
		letters = letters[:26]
	}
	text := make([]rune, schema.MinLength+g.random.Uint64N(longest-schema.MinLength+1))
	for i := range text {
		text[i] = letters[g.random.IntN(len(letters))]
	}
	return string(text)
}

// object has its required members, and the others half of the time, one at least where there must
// be one. A card has a token, and a wallet none.
func (g *generator) object(schema *openapi3.Schema) map[string]any {
	object, names := map[string]any{}, sortedKeys(schema.Properties)
	for _, name := range names {
		if slices.Contains(schema.Required, name) || g.chance(50) {
			object[name] = g.value(name, schema.Properties[name].Value)
		}
	}
	if len(object) == 0 && schema.MinProps > 0 {
		object[names[0]] = g.value(names[0], schema.Properties[names[0]].Value)
	}
	switch object["type"] {
	case "card":
		object["token"] = "tok_visa"
	case "wallet":
		delete(object, "token")
	}
	return object
}

// chance is true in so many of a hundred cases.
func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }
