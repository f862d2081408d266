package oncecheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// isDocument reports whether a word is the file of an OpenAPI document, and not a URL.
func isDocument(word string) bool {
	return !strings.Contains(word, "://") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(word))
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
	document, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		return fmt.Errorf("read the OpenAPI document %s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
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
	if !ok {
		return fmt.Errorf("%s has the operations %q; name one, such as %s#NAME", file, slices.Sorted(maps.Keys(operations)), file)
	}
	server := s.server
	if server == "" && len(document.Servers) > 0 {
		server = document.Servers[0].URL
	}
	if u, err := url.Parse(server); err != nil || u.Host == "" {
		return fmt.Errorf("the document's server is %q; name the base URL of the operations with --server", server)
	}
	s.cfg.Request.Method = cmp.Or(s.cfg.Request.Method, o.method)
	s.cfg.Request.URL = strings.TrimSuffix(server, "/") + o.path
	if err := s.fillParameters(o); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(s.data.parts) == 0 {
		if err := s.fillBody(o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.cfg.Contract, err = contractOf(o.Operation); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.data.into(&s.cfg.Request)
}

// fillParameters puts the required parameters into the request, and those with a flag.
func (s *settings) fillParameters(o operation) error {
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
		if !given && !p.Required {
			continue
		}
		if !given {
			sample, ok := sampleOf(p.Example, p.Examples)
			if !ok {
				sample, ok = exampleOf(p.Schema)
			}
			if !ok {
				return fmt.Errorf("the parameter %s has no example; give one with --parameter %s=VALUE", p.Name, p.Name)
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
	body, ok := sampleOf(media.Example, media.Examples)
	if !ok {
		body, ok = exampleOf(media.Schema)
	}
	if !ok && !o.RequestBody.Value.Required {
		return nil
	}
	if !ok {
		return errors.New("a required member of the body has no example; give the body with -d")
	}
	text, err := json.Marshal(body)
	s.data.parts = []string{string(text)}
	return err
}

func sampleOf(one any, more openapi3.Examples) (any, bool) {
	if one != nil {
		return one, true
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		return more[name].Value.Value, true
	}
	return nil, false
}

// exampleOf returns a value of a schema: its example, or one made of the examples of what it
// requires. The second value is false if one of them has none.
func exampleOf(ref *openapi3.SchemaRef) (any, bool) {
	if ref == nil || ref.Value == nil {
		return nil, false
	}
	switch schema := ref.Value; {
	case schema.Example != nil:
		return schema.Example, true
	case schema.Default != nil:
		return schema.Default, true
	case len(schema.Enum) > 0:
		return schema.Enum[0], true
	case len(schema.AllOf) > 0:
		whole := map[string]any{}
		for _, part := range schema.AllOf {
			value, ok := exampleOf(part)
			members, isObject := value.(map[string]any)
			if !ok || !isObject {
				return nil, false
			}
			maps.Copy(whole, members)
		}
		return whole, true
	case len(schema.OneOf) > 0:
		return exampleOf(schema.OneOf[0])
	case schema.Type.Is(openapi3.TypeArray):
		item, ok := exampleOf(schema.Items)
		return []any{item}, ok
	case schema.Type.Is(openapi3.TypeObject):
		members := map[string]any{}
		for _, name := range schema.Required {
			value, ok := exampleOf(schema.Properties[name])
			if !ok {
				return nil, false
			}
			members[name] = value
		}
		return members, true
	}
	return nil, false
}
