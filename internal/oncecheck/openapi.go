package oncecheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// isDocument reports whether a word names an OpenAPI document, and not a request: a file, or a URL
// with a fragment, which no request has.
func isDocument(word string) bool {
	file, _, named := strings.Cut(word, "#")
	isURL, kind := strings.Contains(file, "://"), filepath.Ext(file)
	return kind == ".yaml" || kind == ".yml" || (isURL && named) || (!isURL && kind == ".json")
}

// takeDocument makes a request of an operation and its examples, and reads what the document
// publishes about keys. The flags of curl override the body and add headers.
func (s *settings) takeDocument(word string) error {
	file, name, _ := strings.Cut(word, "#")
	loader, client := openapi3.NewLoader(), &http.Client{Timeout: DefaultAttempt}
	loader.ReadFromURIFunc = openapi3.ReadFromURIs(openapi3.ReadFromHTTP(client), openapi3.ReadFromFile)
	var document *openapi3.T
	from, err := url.Parse(file)
	if err == nil {
		document, err = loader.LoadFromURI(from)
	}
	if err != nil {
		return fmt.Errorf("read the OpenAPI document %s: %s", file, oneLine(err.Error()))
	}
	if s.server == "" && len(document.Servers) > 0 {
		s.server = document.Servers[0].URL
	}
	server, err := from.Parse(s.server)
	if err != nil || server.Host == "" {
		return fmt.Errorf("the document's server is %q; name the base URL of the operations with --server", s.server)
	}
	var names []string
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			id := cmp.Or(o.OperationID, method+" "+path)
			if id == name {
				o.Parameters = slices.Concat(item.Parameters, o.Parameters)
				s.cfg.Request.Method = cmp.Or(s.cfg.Request.Method, method)
				s.cfg.Request.URL = strings.TrimSuffix(server.String(), "/") + path
				return s.takeOperation(o)
			}
			if method != http.MethodGet && method != http.MethodHead {
				names = append(names, id)
			}
		}
	}
	slices.Sort(names)
	return fmt.Errorf("%s has the operations %q that change something; name one, such as %s#NAME", file, names, file)
}

// takeOperation fills the request with examples.
func (s *settings) takeOperation(o *openapi3.Operation) (err error) {
	var examples sampler
	s.fillParameters(o.Parameters, &examples)
	if s.cfg.Request.Body == "" && o.RequestBody != nil {
		media := cmp.Or(o.RequestBody.Value.Content.Get("application/json"), &openapi3.MediaType{})
		text, err := json.Marshal(examples.one("the body", media.Example, media.Examples, media.Schema))
		if err != nil {
			return fmt.Errorf("write the body: %w", err)
		}
		s.cfg.Request.Body = string(text)
	}
	switch {
	case len(s.parameters) > 0:
		return fmt.Errorf("it has no parameters %q", slices.Collect(maps.Keys(s.parameters)))
	case len(examples.missing) > 0:
		return fmt.Errorf("there is no example for %s; give parameters with --parameter NAME=VALUE, and the body with -d",
			strings.Join(examples.missing, ", "))
	}
	s.cfg.Contract, err = contractOf(o)
	return err
}

// fillParameters puts the required parameters into the request, and those with a flag.
func (s *settings) fillParameters(parameters openapi3.Parameters, examples *sampler) {
	r, query := &s.cfg.Request, url.Values{}
	for _, ref := range parameters {
		p := ref.Value
		value, given := s.parameters[p.Name]
		delete(s.parameters, p.Name)
		inHeader := p.In == openapi3.ParameterInHeader
		switch {
		case inHeader && strings.Contains(strings.ToLower(p.Name), "idempoten"):
			s.cfg.KeyHeader = cmp.Or(s.cfg.KeyHeader, p.Name)
			continue
		case given:
		case !p.Required, inHeader && r.Header.Get(p.Name) != "":
			continue
		default:
			value = fmt.Sprint(examples.one("the parameter "+p.Name, p.Example, p.Examples, p.Schema))
		}
		switch p.In {
		case openapi3.ParameterInPath:
			r.URL = strings.ReplaceAll(r.URL, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInQuery:
			query.Set(p.Name, value)
		case openapi3.ParameterInHeader:
			r.Header.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		r.URL += "?" + query.Encode()
	}
}

// sampler makes values of examples and schemas, and remembers what has none.
type sampler struct{ missing []string }

// one is the first example, or a value of the schema.
func (m *sampler) one(name string, first any, more openapi3.Examples, schema *openapi3.SchemaRef) any {
	for _, next := range slices.Sorted(maps.Keys(more)) {
		first = cmp.Or(first, more[next].Value.Value)
	}
	if first != nil {
		return first
	}
	return m.of(name, schema)
}

// of is a value of a schema: its example, or one made of the examples of the members that it
// requires. A number, a boolean and a string of a known format need none.
func (m *sampler) of(name string, ref *openapi3.SchemaRef) any {
	if ref == nil {
		ref = openapi3.NewSchema().NewRef()
	}
	schema := ref.Value
	options := slices.Concat(schema.OneOf, schema.AnyOf)
	switch {
	case schema.Example != nil || schema.Default != nil:
		return cmp.Or(schema.Example, schema.Default)
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(options) > 0:
		return m.of(name, options[0])
	case schema.Type.Is(openapi3.TypeArray):
		return []any{m.of("an item of "+name, schema.Items)}
	case schema.Type.Is(openapi3.TypeObject), len(schema.AllOf) > 0:
		return m.object(name, schema)
	case schema.Type.Is(openapi3.TypeBoolean):
		return false
	case schema.Type.Is(openapi3.TypeInteger), schema.Type.Is(openapi3.TypeNumber):
		one, largest := 1.0, math.MaxFloat64
		return min(max(one, *cmp.Or(schema.Min, &one)), *cmp.Or(schema.Max, &largest))
	case ofFormat[schema.Format] != "":
		return ofFormat[schema.Format]
	}
	m.missing = append(m.missing, name)
	return nil
}

// object has the members that a schema and its parts require.
func (m *sampler) object(name string, schema *openapi3.Schema) map[string]any {
	members := map[string]any{}
	for _, part := range schema.AllOf {
		own, _ := m.of(name, part).(map[string]any)
		maps.Copy(members, own)
	}
	for _, member := range schema.Required {
		if property := schema.Properties[member]; property != nil { // or a part describes it
			members[member] = m.of("the member "+member, property)
		}
	}
	return members
}

// ofFormat has a value for each format of https://spec.openapis.org/registry/format/ that a client
// can invent.
var ofFormat = map[string]string{
	"uuid":      "4be3ec1f-97ad-4b3f-a00a-c4b5b9a1e5d7",
	"email":     Unique + "@example.com",
	"date":      "2030-01-01",
	"date-time": "2030-01-01T00:00:00Z",
	"uri":       "https://example.com/",
}

// extension is the name under which an OpenAPI operation has its [Contract].
const extension = "x-idempotency"

// Contract is what an API publishes about the keys of an operation.
type Contract struct {
	Key        string `json:"key"`          // required or optional
	Kept       int64  `json:"kept_seconds"` // how long an answer is kept
	Afterwards string `json:"afterwards"`   // what becomes of a key whose answer is no longer kept: refused or executed
}

// contractOf reads the extension of an operation; nil without one.
func contractOf(o *openapi3.Operation) (*Contract, error) {
	published := o.Extensions[extension]
	if published == nil {
		return nil, nil
	}
	var c Contract
	text, _ := json.Marshal(published) // it was read from JSON or YAML
	if err := json.Unmarshal(text, &c); err != nil || c.Kept <= 0 || !slices.Contains([]string{"required", "optional"}, c.Key) ||
		!slices.Contains([]string{"", "refused", "executed"}, c.Afterwards) {
		return nil, fmt.Errorf("%s needs kept_seconds, a positive integer; key, which is required or optional; "+
			"and may have afterwards, which is refused or executed; it is %.200s", extension, text)
	}
	return &c, nil
}
