package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"github.com/oncepay/oncepay/api"
)

// story is a few requests that show one thing.
type story struct {
	Title string
	About string
	Steps []step
}

// step is one request, and the answer that it is expected to get.
type step struct {
	Name   string
	Call   string            // the operation's ID
	Key    string            // the name of the step whose key it is; default: Name
	NoKey  bool              `yaml:"no_key"`
	As     string            // other: the second account
	Path   map[string]string // the path's parameters
	Query  string
	Body   string
	Status int
	Replay bool

	method, path string // of the operation
	keyed        bool   // the operation takes a key
}

// readStories reads the stories, and looks their operations up in the API's description.
func readStories(name string) ([]story, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var stories []story
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&stories); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	spec, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	for _, s := range stories {
		for i := range s.Steps {
			if err := s.Steps[i].resolve(spec); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Steps[i].Name, err)
			}
		}
	}
	return stories, nil
}

// resolve takes method and path from the description.
func (s *step) resolve(spec *openapi3.T) error {
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.OperationID == s.Call {
				s.method, s.path = method, "/v1"+path
				s.keyed = operation.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key") != nil
			}
		}
	}
	for name, value := range s.Path {
		s.path = strings.ReplaceAll(s.path, "{"+name+"}", value)
	}
	if s.Query != "" {
		s.path += "?" + s.Query
	}
	if s.method == "" || strings.Contains(s.path, "{") {
		return fmt.Errorf("there is no operation %s with the parameters %v", s.Call, s.Path)
	}
	return nil
}

// key is the idempotency key, or "".
func (s *step) key() string {
	switch {
	case !s.keyed || s.NoKey:
		return ""
	case s.Key != "":
		return s.Key + "-<run>"
	}
	return s.Name + "-<run>"
}

// expected says what the answer should be, in words.
func (s *step) expected() string {
	text := fmt.Sprintf("%d %s", s.Status, http.StatusText(s.Status))
	if s.Replay {
		text += ", a replay"
	}
	return text
}

var reference = regexp.MustCompile(`<([a-z0-9_]+)>`)

// refer replaces <run> by {{run}}, and <name> by what id makes of the name of a step.
func refer(text string, id func(name string) string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "<>")
		if name == "run" {
			return "{{run}}"
		}
		return id(name)
	})
}
