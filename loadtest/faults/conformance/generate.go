package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	route          *routers.Route // nil: there is nothing that could succeed
	valid          bool           // openapi.yaml allows it
	endpoint, base string
	head           string // the request line and the headers
	body           []byte
}

// generator makes one request.
type generator struct {
	routes []*routers.Route
	cfg    Config
	random *rand.Rand
	number int
}

// request is valid in a third of all cases; the others have one thing wrong.
func (g *generator) request() request {
	endpoint, route := sortedKeys(g.cfg.Endpoints)[g.number%len(g.cfg.Endpoints)], pick(g, g.routes...)
	base := strings.TrimPrefix(g.cfg.Endpoints[endpoint], "http://")
	r := request{endpoint: endpoint, route: route, valid: true, base: base}
	target, query := basePath+route.Path, url.Values{}
	headers := "Host: " + r.base + "\r\nConnection: close\r\nAuthorization: Bearer " + g.cfg.APIKey + "\r\n"
	for _, ref := range route.Operation.Parameters {
		p := ref.Value
		if !p.Required && g.chance(50) {
			continue
		}
		switch value := fmt.Sprint(g.value(p.Name, p.Schema.Value)); p.In {
		case openapi3.ParameterInPath:
			target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInHeader:
			headers += p.Name + ": " + value + "\r\n"
		case openapi3.ParameterInQuery:
			query.Set(p.Name, value)
			r.valid = r.valid && p.Name != "cursor" // only the API makes valid ones
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if route.Path == "/webhooks/psp" {
		headers += "webhook-timestamp: 1700000000\r\nwebhook-signature: v1,bm9uZQ==\r\n"
		r.valid = false // only the provider can sign one
	}
	if route.Operation.RequestBody != nil {
		schema := route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
		r.body, _ = json.Marshal(g.value("", schema)) // strings, numbers, maps and slices
		headers += "Content-Type: application/json\r\n"
	}
	changes := g.chance(65)
	r.valid = r.valid && !changes
	ofBody := changes && g.chance(40)
	if ofBody {
		r.body = pick(g, bodies...)(g, r.body)
	}
	if len(r.body) > 0 {
		headers += fmt.Sprintf("Content-Length: %d\r\n", len(r.body))
	}
	r.head = route.Method + " " + target + " HTTP/1.1\r\n" + headers + "\r\n"
	if changes && !ofBody {
		change := pick(g, heads...)
		if at := change.part.FindStringSubmatchIndex(r.head); at != nil {
			with := change.part.ExpandString(nil, pick(g, change.with...), r.head, at)
			r.head = r.head[:at[0]] + string(with) + r.head[at[1]:]
			if change.nowhere {
				r.route = nil
			}
		}
	}
	return r
}

// value makes one that the schema allows; name is that of the member or parameter.
func (g *generator) value(name string, schema *openapi3.Schema) any {
	switch {
	case len(schema.Enum) > 0:
		return pick(g, schema.Enum...)
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

// text makes one that exists where it has to, or of a form that openapi.yaml describes by a
// pattern, or letters.
func (g *generator) text(name string, schema *openapi3.Schema) string {
	number := fmt.Sprintf("generated-s%dn%d", g.cfg.Seed, g.number) // digits alone could be a card number
	known := map[string]string{
		"customer_id": pick(g, append(slices.Clone(g.cfg.Customers), uuid.NewString())...),
		"sku":         pick(g, "generated-a", "generated-b"),
		"email":       number + "@example.com",
		"token":       "tok_visa",
		"currency":    "USD",
		"country":     "DE",
		"If-Match":    fmt.Sprintf(`"%d"`, 1+g.random.IntN(9)),
		"uuid":        uuid.NewString(),
		"date-time":   "2026-11-21T12:00:00Z",

		idempotency.HeaderKey: number,
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
	length := schema.MinLength + g.random.Uint64N(longest-schema.MinLength+1)
	return strings.Repeat(string(pick(g, letters...)), int(length))
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
