package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/oncepay/oncepay/api"
)

// basePath is where the API's paths begin.
const basePath = "/v1"

// spec is openapi.yaml, ready for use.
type spec struct {
	routes  []*routers.Route
	problem *openapi3.Schema
}

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
		operations := item.Operations()
		for _, method := range sortedKeys(operations) {
			operation := operations[method]
			operation.Parameters = slices.Concat(item.Parameters, operation.Parameters)
			s.routes = append(s.routes, &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: operation})
		}
	}
	return s, nil
}

// exchange sends a request once and returns the status, and what is wrong with the answer.
func exchange(ctx context.Context, client *http.Client, s *spec, r request) (status int, wrong error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	send := sendHTTP
	if r.raw != nil {
		send = sendRaw
	}
	answer, err := send(ctx, client, r)
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, fmt.Errorf("half an answer: %w", err)
	}
	return answer.StatusCode, s.check(r, answer, body)
}

func sendHTTP(ctx context.Context, client *http.Client, r request) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, r.base+r.target, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	q.Header = r.header
	return client.Do(q)
}

// sendRaw writes bytes to a connection of its own, which ends with ctx.
func sendRaw(ctx context.Context, _ *http.Client, r request) (*http.Response, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(r.base, "http://"))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	// A server may answer and close before it has read everything: what it answered counts.
	_, writeErr := conn.Write(r.raw)
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.method})
	if err != nil {
		return nil, errors.Join(err, writeErr)
	}
	return answer, nil
}

// check returns what is wrong with an answer.
func (s *spec) check(r request, answer *http.Response, body []byte) error {
	status, header := answer.StatusCode, answer.Header
	switch {
	case header.Get("X-Request-ID") == "":
		return errors.New("no X-Request-ID")
	case status >= 500 && status != http.StatusServiceUnavailable && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported:
		return fmt.Errorf("a server error: %s", body)
	case status == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "":
		return errors.New("no WWW-Authenticate")
	case status == http.StatusMethodNotAllowed && header.Get("Allow") == "":
		return errors.New("no Allow")
	case r.valid && status == http.StatusBadRequest:
		return fmt.Errorf("a valid request is refused: %s", body)
	case r.method == http.MethodHead:
		return nil // has no body
	case status >= http.StatusBadRequest:
		return s.checkProblem(answer, body)
	case r.route == nil:
		return errors.New("succeeded where there is nothing")
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: &http.Request{Method: r.method}, Route: r.route},
		Status:                 status, Header: header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	return openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(body))
}

func (s *spec) checkProblem(answer *http.Response, body []byte) error {
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		return fmt.Errorf("Content-Type is %q: %.120q", kind, body)
	}
	var problem map[string]any
	if err := json.Unmarshal(body, &problem); err != nil {
		return fmt.Errorf("no problem: %w", err)
	}
	if err := s.problem.VisitJSON(problem); err != nil {
		return fmt.Errorf("no problem: %w", err)
	}
	if problem["request_id"] != answer.Header.Get("X-Request-ID") {
		return fmt.Errorf("request_id is %v, X-Request-ID is %s", problem["request_id"], answer.Header.Get("X-Request-ID"))
	}
	if problem["status"] != float64(answer.StatusCode) {
		return fmt.Errorf("status is %v", problem["status"])
	}
	return nil
}
