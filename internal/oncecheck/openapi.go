package oncecheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// isDocument reports whether a word names an OpenAPI document, and not a request: a file, or a URL
// with a fragment, which no request has.
func isDocument(word string) bool {
	file, _, named := strings.Cut(word, "#")
	isURL, kind := strings.Contains(file, "://"), filepath.Ext(file)
	return kind == ".yaml" || kind == ".yml" || (isURL && named) || (!isURL && kind == ".json")
}

// loadDocument reads a document from a file or a URL, and returns the URL that its servers are
// relative to.
func loadDocument(from string) (document *openapi3.T, base *url.URL, err error) {
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = openapi3.ReadFromURIs(openapi3.ReadFromHTTP(&http.Client{Timeout: 10 * time.Second}), openapi3.ReadFromFile)
	if base, err = url.Parse(from); err == nil {
		document, err = loader.LoadFromURI(base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the OpenAPI document %s: %s", from, strings.Join(strings.Fields(err.Error()), " "))
	}
	return document, base, nil
}

// parameter is the flag's function.
func (s *settings) parameter(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("a parameter has to be like order_id=42, and is %q", text)
	}
	s.parameters[name] = value
	return nil
}

// operation is one of a document.
type operation struct {
	*openapi3.Operation
	method, path string
	parameters   openapi3.Parameters // of its path, and its own
}

// takeDocument makes a request of an operation and its examples, and reads what the document
// publishes about keys. The flags of curl override the body and add headers.
func (s *settings) takeDocument(file, name string) error {
	document, base, err := loadDocument(file)
	if err != nil {
		return err
	}
	operations := map[string]operation{}
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			if method != http.MethodGet && method != http.MethodHead {
				operations[cmp.Or(o.OperationID, method+" "+path)] = operation{o, method, path, slices.Concat(item.Parameters, o.Parameters)}
			}
		}
	}
	o, ok := operations[name]
	if len(operations) == 0 {
		return fmt.Errorf("%s has no operation of OpenAPI 3 that changes something", file)
	}
	if !ok {
		return fmt.Errorf("%s has the operations %q; name one, such as %s#NAME", file, slices.Sorted(maps.Keys(operations)), file)
	}
	server := s.server
	if server == "" && len(document.Servers) > 0 {
		server = document.Servers[0].URL
	}
	u, err := base.Parse(server)
	if err != nil || u.Host == "" {
		return fmt.Errorf("the document's server is %q; name the base URL of the operations with --server", server)
	}
	s.cfg.Request.Method = cmp.Or(s.cfg.Request.Method, o.method)
	s.cfg.Request.URL = strings.TrimSuffix(u.String(), "/") + o.path
	if err := s.fillParameters(o); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(s.body) == 0 {
		if err := s.fillBody(o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.cfg.Contract, err = contractOf(o.Operation); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.setBody()
	return nil
}

// fillParameters puts the required parameters into the request, and those with a flag.
func (s *settings) fillParameters(o operation) error {
	for name := range s.parameters {
		if !slices.ContainsFunc(o.parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == name }) {
			return fmt.Errorf("it has no parameter %q", name)
		}
	}
	query := url.Values{}
	for _, ref := range o.parameters {
		p := ref.Value
		if p.In == openapi3.ParameterInHeader && strings.Contains(strings.ToLower(p.Name), "idempoten") {
			if s.cfg.KeyHeader == DefaultKeyHeader {
				s.cfg.KeyHeader = p.Name
			}
			continue
		}
		value, given := s.parameters[p.Name]
		byHeader := p.In == openapi3.ParameterInHeader && s.cfg.Request.Header.Get(p.Name) != ""
		if !given && (!p.Required || byHeader) {
			continue
		}
		if !given {
			sample, err := sampleOf("the parameter "+p.Name, p.Example, p.Examples, p.Schema)
			if err != nil {
				return fmt.Errorf("%w; give one with --parameter %s=VALUE", err, p.Name)
			}
			value = fmt.Sprint(sample)
		}
		switch p.In {
		case openapi3.ParameterInPath:
			s.cfg.Request.URL = strings.ReplaceAll(s.cfg.Request.URL, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInQuery:
			query.Set(p.Name, value)
		case openapi3.ParameterInHeader:
			s.cfg.Request.Header.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		s.cfg.Request.URL += "?" + query.Encode()
	}
	return nil
}

// fillBody makes the body of the operation's examples.
func (s *settings) fillBody(o operation) error {
	if o.RequestBody == nil {
		return nil
	}
	media := o.RequestBody.Value.Content.Get("application/json")
	if media == nil {
		return errors.New("its body is no JSON; give it with -d")
	}
	body, err := sampleOf("the body", media.Example, media.Examples, media.Schema)
	if err != nil && !o.RequestBody.Value.Required {
		return nil //nolint:nilerr // it may be left out
	}
	if err != nil {
		return fmt.Errorf("%w; give the body with -d", err)
	}
	text, err := json.Marshal(body)
	s.body = []string{string(text)}
	return err
}

func sampleOf(name string, one any, more openapi3.Examples, schema *openapi3.SchemaRef) (any, error) {
	if one != nil {
		return one, nil
	}
	for _, first := range slices.Sorted(maps.Keys(more)) {
		return more[first].Value.Value, nil
	}
	return exampleOf(name, schema)
}

// exampleOf returns a value of a schema: its example, or one made of the examples of the members
// that it requires. A number, a boolean and a string of a known format need none. The error names
// what has none.
func exampleOf(name string, ref *openapi3.SchemaRef) (any, error) {
	if ref == nil || ref.Value == nil {
		return nil, fmt.Errorf("%s has no schema", name)
	}
	switch schema := ref.Value; {
	case schema.Example != nil:
		return schema.Example, nil
	case schema.Default != nil:
		return schema.Default, nil
	case len(schema.Enum) > 0:
		return schema.Enum[0], nil
	case len(schema.AllOf) > 0:
		whole := map[string]any{}
		for _, part := range schema.AllOf {
			value, err := exampleOf(name, part)
			members, isObject := value.(map[string]any)
			if err == nil && !isObject {
				err = fmt.Errorf("%s has a part that is no object", name)
			}
			if err != nil {
				return nil, err
			}
			maps.Copy(whole, members)
		}
		return whole, nil
	case len(schema.OneOf)+len(schema.AnyOf) > 0:
		return exampleOf(name, slices.Concat(schema.OneOf, schema.AnyOf)[0])
	case schema.Type.Is(openapi3.TypeArray):
		item, err := exampleOf("an item of "+name, schema.Items)
		return []any{item}, err
	case schema.Type.Is(openapi3.TypeObject):
		members := map[string]any{}
		for _, member := range schema.Required {
			value, err := exampleOf("the member "+member, schema.Properties[member])
			if err != nil {
				return nil, err
			}
			members[member] = value
		}
		return members, nil
	default:
		return simplest(name, schema)
	}
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

// simplest returns a value of a type that says by itself what is valid: the least positive number,
// false, or a string of a known format.
func simplest(name string, schema *openapi3.Schema) (any, error) {
	switch {
	case schema.Type.Is(openapi3.TypeBoolean):
		return false, nil
	case schema.Type.Is(openapi3.TypeInteger), schema.Type.Is(openapi3.TypeNumber):
		least := 1.0
		if schema.Min != nil {
			least = max(least, *schema.Min)
		}
		if schema.Max != nil && *schema.Max < least {
			least = *schema.Max
		}
		if schema.MultipleOf != nil {
			least = *schema.MultipleOf * math.Ceil(least/(*schema.MultipleOf))
		}
		return least, nil
	case ofFormat[schema.Format] != "":
		return ofFormat[schema.Format], nil
	}
	return nil, fmt.Errorf("%s has no example", name)
}
