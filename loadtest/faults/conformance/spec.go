package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/oncepay/oncepay/api"
)

// basePath is where the API's paths begin.
const basePath = "/v1"

// spec is openapi.yaml, ready for use.
type spec struct {
	routes  []route
	problem *openapi3.Schema
}

// route is an operation; its zero value stands for a path that does not exist.
type route struct{ *routers.Route }

func readSpec() (*spec, error) {
	document, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	if err := document.Validate(context.Background()); err != nil {
		return nil, err
	}
	s := &spec{problem: document.Components.Schemas["Problem"].Value}
	for _, path := range document.Paths.InMatchingOrder() {
		item := document.Paths.Value(path)
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			operation := item.GetOperation(method)
			if operation == nil {
				continue
			}
			operation.Parameters = slices.Concat(item.Parameters, operation.Parameters)
			s.routes = append(s.routes, route{&routers.Route{
				Spec: document, Path: path, PathItem: item, Method: method, Operation: operation,
			}})
		}
	}
	return s, nil
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// check returns what is wrong with an answer.
func (s *spec) check(r request, a answer) error {
	switch {
	case a.header.Get("X-Request-ID") == "":
		return errors.New("no X-Request-ID")
	case a.status >= 500 && a.status != http.StatusServiceUnavailable && a.status != http.StatusNotImplemented &&
		a.status != http.StatusHTTPVersionNotSupported:
		return fmt.Errorf("a server error: %s", a.body)
	case a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") == "":
		return errors.New("no WWW-Authenticate")
	case a.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "":
		return errors.New("no Allow")
	case r.valid && a.status == http.StatusBadRequest:
		return fmt.Errorf("a valid request is refused: %s", a.body)
	case r.method == http.MethodHead:
		return nil // has no body
	case a.status >= http.StatusBadRequest:
		return s.checkProblem(a)
	case r.route.Route == nil:
		return errors.New("succeeded where there is nothing")
	}
	return r.checkBody(a)
}

func (s *spec) checkProblem(a answer) error {
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		return fmt.Errorf("Content-Type is %q: %.120q", kind, a.body)
	}
	var problem map[string]any
	if err := strictUnmarshal(a.body, &problem); err != nil {
		return fmt.Errorf("no problem: %w", err)
	}
	if err := s.problem.VisitJSON(problem); err != nil {
		return fmt.Errorf("no problem: %w", err)
	}
	if problem["request_id"] != a.header.Get("X-Request-ID") {
		return fmt.Errorf("request_id is %v, X-Request-ID is %s", problem["request_id"], a.header.Get("X-Request-ID"))
	}
	if problem["status"] != float64(a.status) {
		return fmt.Errorf("status is %v", problem["status"])
	}
	return nil
}

// checkBody holds an answer below 400 against its schema.
func (r request) checkBody(a answer) error {
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: &http.Request{Method: r.method}, Route: r.route.Route,
		},
		Status: a.status, Header: a.header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes(a.body)
	return openapi3filter.ValidateResponse(context.Background(), input)
}
