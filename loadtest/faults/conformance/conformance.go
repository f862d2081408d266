// Package conformance sends requests that are generated from openapi.yaml, valid, nearly valid and
// garbage, and checks that every answer is one that openapi.yaml describes: no request may be
// answered in another shape, by nginx or by a replica.
package conformance

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// answerTimeout is longer than any route may take.
	answerTimeout = 30 * time.Second
	// atOnce is how many requests are under way at a time. Two of a thousand have a body that never
	// ends, and are answered after ten seconds: the others must not wait for them.
	atOnce = 48
	// basePath is where the API's paths begin.
	basePath = "/v1"
	// problemType is the Content-Type of every error.
	problemType = "application/problem+json"
)

// Config says where to send what.
type Config struct {
	Endpoints map[string]string // base URLs by name, without a trailing slash
	APIKey    string
	Customers []string // IDs of customers that exist
	Requests  int
	Seed      uint64
}

// Run sends the requests, evenly to all endpoints. Its error says that it could not.
func Run(ctx context.Context, cfg Config) (found []books.Violation, err error) {
	routes, err := readRoutes()
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	var mu sync.Mutex
	err = shop.Each(ctx, cfg.Requests, atOnce, func(ctx context.Context, n int) error {
		g := generator{routes: routes, cfg: cfg, number: n, random: rand.New(rand.NewPCG(cfg.Seed, uint64(n)))}
		r := g.request()
		if status, wrong := g.exchange(ctx, r); wrong != nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, books.Broken(verify.AnswersConform, "%s: %d to %.200q %.80q: %s",
				r.endpoint, status, r.head, r.body, wrong))
		}
		return ctx.Err()
	})
	return found, err
}

// readRoutes reads the operations of openapi.yaml.
func readRoutes() (routes []*routers.Route, err error) {
	document, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	for _, path := range document.Paths.InMatchingOrder() {
		item := document.Paths.Value(path)
		for _, method := range sortedKeys(item.Operations()) {
			operation := item.GetOperation(method)
			operation.Parameters = slices.Concat(item.Parameters, operation.Parameters)
			routes = append(routes, &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: operation})
		}
	}
	return routes, nil
}

// exchange sends a request once, on a connection of its own, and returns the status, and what is
// wrong with the answer.
func (g *generator) exchange(ctx context.Context, r request) (status int, wrong error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.base)
	if err != nil {
		return 0, fmt.Errorf("no connection: %w", err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	// A server may answer and close before it has read everything: what it answered counts.
	_, writeErr := conn.Write(append([]byte(r.head), r.body...))
	method, _, _ := strings.Cut(r.head, " ")
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", errors.Join(err, writeErr))
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, fmt.Errorf("half an answer: %w", err)
	}
	return answer.StatusCode, g.check(r, answer, body)
}

// check returns what is wrong with an answer. A path that does not exist has the problems of any
// other.
func (g *generator) check(r request, answer *http.Response, body []byte) error {
	status, header, route := answer.StatusCode, answer.Header, cmp.Or(r.route, g.routes[0])
	var problem struct {
		Status    int
		RequestID string `json:"request_id"`
	}
	refused := status >= http.StatusBadRequest
	if refused {
		_ = json.Unmarshal(body, &problem) // or it is none, as its schema says
	}
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
	case answer.Request.Method == http.MethodHead:
		return nil // has no body
	case !refused && r.route == nil:
		return errors.New("succeeded where there is nothing")
	case refused && header.Get("Content-Type") != problemType:
		return fmt.Errorf("Content-Type is %q: %.120q", header.Get("Content-Type"), body)
	case refused && (problem.RequestID != header.Get("X-Request-ID") || problem.Status != status):
		return fmt.Errorf("status is %d, request_id is %q, X-Request-ID is %s", problem.Status, problem.RequestID, header.Get("X-Request-ID"))
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: &http.Request{Method: route.Method}, Route: route},
		Status:                 status, Header: header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	return openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(body))
}
