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
		err = fmt.Errorf("read the OpenAPI document %s: %s", from, strings.Join(strings.Fields(err.Error()), " "))
	}
	return document, base, err
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

// takeDocument makes a request of an operation and its examples, and reads what the document
// publishes about keys. The flags of curl override the body and add headers.
func (s *settings) takeDocument(word string) error {
	file, name, _ := strings.Cut(word, "#")
	document, base, err := loadDocument(file)
	if err != nil {
		return err
	}
	takes := map[string]func() error{}
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			if method == http.MethodGet || method == http.MethodHead {
				continue
			}
			takes[cmp.Or(o.OperationID, method+" "+path)] = func() error {
				o.Parameters = slices.Concat(item.Parameters, o.Parameters)
				s.cfg.Request.Method = cmp.Or(s.cfg.Request.Method, method)
				return s.takeOperation(o, path)
			}
		}
	}
	if s.server == "" && len(document.Servers) > 0 {
		s.server = document.Servers[0].URL
	}
	server, err := base.Parse(s.server)
	take, found := takes[name]
	switch {
	case len(takes) == 0:
		return fmt.Errorf("%s has no operation of OpenAPI 3 that changes something", file)
	case !found:
		return fmt.Errorf("%s has the operations %q; name one, such as %s#NAME", file, slices.Sorted(maps.Keys(takes)), file)
	case err != nil || server.Host == "":
		return fmt.Errorf("the document's server is %q; name the base URL of the operations with --server", s.server)
	}
	s.cfg.Request.URL = strings.TrimSuffix(server.String(), "/")
	if err := take(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (s *settings) takeOperation(o *openapi3.Operation, path string) (err error) {
	s.cfg.Request.URL += path
	if err := s.fillParameters(o.Parameters); err != nil {
		return err
	}
	if s.cfg.Request.Body == "" && o.RequestBody != nil {
		if err := s.fillBody(o.RequestBody.Value); err != nil {
			return err
		}
	}
	s.cfg.Contract, err = contractOf(o)
	return err
}

// fillParameters puts the required parameters into the request, and those with a flag.
func (s *settings) fillParameters(parameters openapi3.Parameters) error {
	r, query := &s.cfg.Request, url.Values{}
	for _, ref := range parameters {
		p := ref.Value
		value, given := s.parameters[p.Name]
		if given {
			p.Example, p.Required = value, true
			delete(s.parameters, p.Name)
		}
		inHeader := p.In == openapi3.ParameterInHeader
		if inHeader && strings.Contains(strings.ToLower(p.Name), "idempoten") {
			if s.cfg.KeyHeader == DefaultKeyHeader {
				s.cfg.KeyHeader = p.Name
			}
			continue
		}
		if !p.Required || (inHeader && !given && r.Header.Get(p.Name) != "") {
			continue
		}
		sample, err := sampleOf("the parameter "+p.Name, p.Example, p.Examples, p.Schema)
		if err != nil {
			return fmt.Errorf("%w; give one with --parameter %s=VALUE", err, p.Name)
		}
		switch value = fmt.Sprint(sample); p.In {
		case openapi3.ParameterInPath:
			r.URL = strings.ReplaceAll(r.URL, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInQuery:
			query.Set(p.Name, value)
		case openapi3.ParameterInHeader:
			r.Header.Set(p.Name, value)
		}
	}
	for name := range s.parameters {
		return fmt.Errorf("it has no parameter %q", name)
	}
	if len(query) > 0 {
		r.URL += "?" + query.Encode()
	}
	return nil
}

// fillBody makes the body of the operation's examples.
func (s *settings) fillBody(o *openapi3.RequestBody) error {
	media := o.Content.Get("application/json")
	if media == nil {
		return errors.New("its body is no JSON; give it with -d")
	}
	body, err := sampleOf("the body", media.Example, media.Examples, media.Schema)
	if err != nil && !o.Required {
		return nil //nolint:nilerr // it may be left out
	}
	if err != nil {
		return fmt.Errorf("%w; give the body with -d", err)
	}
	text, err := json.Marshal(body)
	s.cfg.Request.Body = string(text)
	return err
}

func sampleOf(name string, one any, more openapi3.Examples, schema *openapi3.SchemaRef) (any, error) {
	for _, next := range slices.Sorted(maps.Keys(more)) {
		one = cmp.Or(one, more[next].Value.Value)
	}
	if one != nil {
		return one, nil
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
	schema := ref.Value
	if value := cmp.Or(schema.Example, schema.Default); value != nil {
		return value, nil
	}
	switch oneOf := slices.Concat(schema.OneOf, schema.AnyOf); {
	case len(schema.Enum) > 0:
		return schema.Enum[0], nil
	case len(oneOf) > 0:
		return exampleOf(name, oneOf[0])
	case schema.Type.Is(openapi3.TypeArray):
		item, err := exampleOf("an item of "+name, schema.Items)
		return []any{item}, err
	case schema.Type.Is(openapi3.TypeObject), len(schema.AllOf) > 0:
		return objectOf(name, schema)
	case schema.Type.Is(openapi3.TypeBoolean):
		return false, nil
	case schema.Type.Is(openapi3.TypeInteger), schema.Type.Is(openapi3.TypeNumber):
		return leastOf(schema), nil
	case ofFormat[schema.Format] != "":
		return ofFormat[schema.Format], nil
	}
	return nil, fmt.Errorf("%s has no example", name)
}

// objectOf has the members that a schema and its parts require.
func objectOf(name string, schema *openapi3.Schema) (map[string]any, error) {
	members := map[string]any{}
	for _, part := range schema.AllOf {
		value, err := exampleOf(name, part)
		own, isObject := value.(map[string]any)
		if err == nil && !isObject {
			err = fmt.Errorf("%s has a part that is no object", name)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(members, own)
	}
	for _, member := range schema.Required {
		if len(schema.AllOf) > 0 && schema.Properties[member] == nil { // a part may describe it
			continue
		}
		value, err := exampleOf("the member "+member, schema.Properties[member])
		if err != nil {
			return nil, err
		}
		members[member] = value
	}
	return members, nil
}

// leastOf is the least positive number of a schema, or the greatest one if that is less than 1.
func leastOf(schema *openapi3.Schema) float64 {
	least := 1.0
	if schema.Min != nil {
		least = max(least, *schema.Min)
	}
	if schema.Max != nil {
		least = min(least, *schema.Max)
	}
	if schema.MultipleOf != nil {
		least = *schema.MultipleOf * math.Ceil(least/(*schema.MultipleOf))
	}
	return least
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
