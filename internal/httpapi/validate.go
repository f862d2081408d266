package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/bojanz/currency"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/go-chi/chi/v5"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/cardnumber"
)

// errCardNumber does not say which field it was and does not repeat it.
var errCardNumber = problem{status: http.StatusBadRequest, code: "card_number_refused",
	detail: "The request contains what looks like a card number. Card numbers are never accepted here; send the provider's token instead."}

// validator checks requests against the API description. It is never changed.
type validator struct {
	operations map[string]*routers.Route // by method and route pattern
	options    *openapi3filter.Options
}

// loadValidator reads the description that is compiled in, once for all servers of a process. The
// Idempotency-Key is not validated here: the idempotency stage checks it.
var loadValidator = sync.OnceValues(func() (*validator, error) {
	spec, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	if err := spec.Validate(context.Background()); err != nil {
		return nil, err
	}
	return newValidator(spec), nil
})

func newValidator(spec *openapi3.T) *validator {
	v := &validator{operations: map[string]*routers.Route{}, options: &openapi3filter.Options{
		AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc, // done before
		SkipSettingDefaults: true,                                  // bodies stay as they were sent
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.WithStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(uuidPattern)),
			openapi3.WithStringFormatValidator("currency", openapi3.NewCallbackValidator(checkCurrency))},
	}}
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			operation.Parameters = withoutKey(operation.Parameters)
			v.operations[method+" "+basePath+path] = &routers.Route{
				Spec: spec, Path: path, PathItem: item, Method: method, Operation: operation}
		}
	}
	return v
}

// checkCurrency accepts the currencies that can be paid in: the active ones of ISO 4217 that have a
// minor unit.
func checkCurrency(code string) error {
	if !currency.IsValid(code) {
		return errors.New("no currency")
	}
	return nil
}

// uuidPattern matches UUIDs of all versions, in their usual spelling only, so that one resource has
// one URL.
const uuidPattern = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

func withoutKey(all openapi3.Parameters) openapi3.Parameters {
	var rest openapi3.Parameters
	for _, p := range all {
		if p.Value.In != openapi3.ParameterInHeader || p.Value.Name != idempotency.HeaderKey {
			rest = append(rest, p)
		}
	}
	return rest
}

// validate refuses what breaks the API description, before any key is looked at. The strict reading
// comes first: the description's validator, like the handlers, would take the last of two members
// of one name.
func (s *Server) validate(v *validator) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := v.check(r, s.policyOf(r)); err != nil {
				s.reject(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// check leaves the request with a body that can be read again. The policy is nil on a route that
// takes no key.
func (v *validator) check(r *http.Request, policy *idempotency.Policy) error {
	if err := checkText(r, policy != nil); err != nil {
		return err
	}
	routing := chi.RouteContext(r.Context())
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route := v.operations[method+" "+routing.RoutePattern()]
	if route == nil {
		return fmt.Errorf("the API description has no %s %s", method, routing.RoutePattern())
	}
	// A resource without versions matches no entity tag, and must then not be changed (RFC 9110,
	// section 13.1.1).
	if condition := r.Header.Get("If-Match"); policy != nil && condition != "" && condition != "*" && !slices.Contains(policy.Headers, "If-Match") {
		return invalidRequest("If-Match is for products: only they have versions.")
	}
	params, err := pathParams(r, routing)
	if err != nil {
		return err
	}
	if route.Operation.RequestBody != nil {
		if err := checkBody(r, policy); err != nil {
			return err
		}
	}
	err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route, Options: v.options})
	if err != nil {
		return describe(err)
	}
	return nil
}

// checkText refuses a query that cannot be read, and card numbers in it and, on a route that takes
// one, in the key.
func checkText(r *http.Request, keyed bool) error {
	texts, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalidRequest("The query is not valid.").because(err)
	}
	if keyed {
		texts[idempotency.HeaderKey] = r.Header.Values(idempotency.HeaderKey)
	}
	for name, values := range texts {
		if slices.ContainsFunc(append(values, name), cardnumber.Contains) {
			return errCardNumber
		}
	}
	return nil
}

// pathParams returns the path's parameters unescaped. It refuses card numbers: one of the
// parameters names a product.
func pathParams(r *http.Request, routing *chi.Context) (map[string]string, error) {
	params := make(map[string]string, len(routing.URLParams.Keys))
	for i, name := range routing.URLParams.Keys {
		value := routing.URLParams.Values[i]
		if r.URL.RawPath != "" { // the router matched the escaped path
			unescaped, err := url.PathUnescape(value)
			if err != nil {
				return nil, invalidRequest("%s is not valid.", name)
			}
			value = unescaped
		}
		if cardnumber.Contains(value) {
			return nil, errCardNumber
		}
		params[name] = value
	}
	return params, nil
}

// checkBody reads the body, of which limitBody has bounded the size. Provider events are the only
// bodies of a route without a policy.
func checkBody(r *http.Request, policy *idempotency.Policy) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return unsupportedMediaType("The body must not be compressed.")
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return unsupportedMediaType("The Content-Type must be application/json.")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return readProblem(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if policy == nil {
		return checkSyntax(body)
	}
	return checkJSON(body, policy.ExcludedFields)
}
