package httpapi

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/internal/checkout"
)

func testServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{Service: checkout.NewService(noStore{}, nil), Store: memstore.New(), Logger: slog.New(slog.DiscardHandler),
		Replica: "api-1", RateLimit: 1000, Lease: 15 * time.Second, PaymentTTL: 48 * time.Hour, OrderTTL: 24 * time.Hour,
		PaymentDeadline: time.Minute, OrderDeadline: 30 * time.Second}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

// noStore is for requests that do not reach a store.
type noStore struct{ checkout.Store }

func (noStore) CardPayments() (none checkout.Operations[checkout.NewPayment, checkout.Payment]) {
	return none
}

func (noStore) CardRefunds() (none checkout.Operations[checkout.NewRefund, checkout.Refund]) {
	return none
}

// described walks the operations of the API description.
func described(t *testing.T, visit func(route string, operation *openapi3.Operation)) {
	t.Helper()
	spec, err := api.GetSpec()
	require.NoError(t, err)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			visit(method+" "+basePath+path, operation)
		}
	}
}

func TestRoutes_AreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	var inSpec, routed []string
	described(t, func(route string, _ *openapi3.Operation) { inSpec = append(inSpec, route) })
	err := chi.Walk(testServer(t, nil).routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(path, basePath) { // the others are pages
			routed = append(routed, method+" "+path)
		}
		return nil
	})
	require.NoError(t, err)
	require.ElementsMatch(t, inSpec, routed)
}

func isProviderEvent(route string) bool {
	return strings.HasPrefix(route, "POST "+basePath+"/webhooks/")
}

// Every write has a policy, of the same strictness and with the same conditions as the description
// says, and nothing else has one.
func TestPolicies_CoverEveryWrite(t *testing.T) {
	t.Parallel()
	policies := keyedRoutes(Config{})
	described(t, func(route string, operation *openapi3.Operation) {
		key := operation.Parameters.GetByInAndName(openapi3.ParameterInHeader, idempotency.HeaderKey)
		policy := policies[route]
		writes := route[:4] != "GET " && !isProviderEvent(route) // it has the event's ID
		require.Equal(t, writes, policy != nil, route)
		require.Equal(t, writes, key != nil, route)
		if writes {
			require.Equal(t, key.Required, policy.Required, route)
			for _, condition := range []string{"If-Match", "If-None-Match"} {
				if operation.Parameters.GetByInAndName(openapi3.ParameterInHeader, condition) != nil {
					require.Contains(t, policy.Headers, condition, route)
				}
			}
		}
		delete(policies, route)
	})
	require.Empty(t, policies, "policies of routes that don't exist")
}

func TestClasses_CoverEveryRoute(t *testing.T) {
	t.Parallel()
	var routes []string
	described(t, func(route string, _ *openapi3.Operation) { routes = append(routes, route) })
	require.ElementsMatch(t, routes, slices.Collect(maps.Keys(classOf)), "each route has a class in classOf, overload.go")
}

func TestPolicies_AreThoseOfTheDesign(t *testing.T) {
	t.Parallel()
	cfg := Config{Lease: 15 * time.Second, PaymentTTL: 48 * time.Hour, OrderTTL: 24 * time.Hour,
		PaymentDeadline: time.Minute, OrderDeadline: 30 * time.Second}
	money := idempotency.Policy{Required: true, TTL: 48 * time.Hour, Lease: 15 * time.Second, Deadline: time.Minute,
		MaxWait: 30 * time.Second, FailureMode: idempotency.FailClosed, Authority: true, ExcludedFields: []string{"client_timestamp", "request_nonce"}}
	change := idempotency.Policy{Required: true, TTL: 24 * time.Hour, Lease: 15 * time.Second, Deadline: 30 * time.Second,
		MaxWait: 5 * time.Second, FailureMode: idempotency.FailOpen}
	optional := change
	optional.Required = false
	conditional := change
	conditional.Headers = []string{"If-Match", "If-None-Match"}
	optionalConditional := conditional
	optionalConditional.Required = false
	require.Equal(t, map[string]*idempotency.Policy{
		"POST /v1/orders/{order_id}/payments": &money, "POST /v1/payments/{payment_id}/refunds": &money,
		"POST /v1/customers/{customer_id}/top-ups": &money,
		"POST /v1/orders":                          &change, "PATCH /v1/orders/{order_id}": &change, "POST /v1/customers": &change,
		"PATCH /v1/customers/{customer_id}": &optional,
		"PATCH /v1/products/{sku}":          &conditional, "PUT /v1/products/{sku}": &optionalConditional,
	}, keyedRoutes(cfg))
}

// TestDescription_PublishesThePolicies: clients and oncecheck read x-idempotency. The durations are
// the defaults of the configuration.
func TestDescription_PublishesThePolicies(t *testing.T) {
	t.Parallel()
	policies := keyedRoutes(Config{PaymentTTL: 48 * time.Hour, OrderTTL: 24 * time.Hour})
	described(t, func(route string, operation *openapi3.Operation) {
		policy := policies[route]
		delete(policies, route)
		if policy == nil {
			require.NotContains(t, operation.Extensions, "x-idempotency", route)
			return
		}
		published := map[string]any{"key": "optional", "kept_seconds": policy.TTL.Seconds(), "afterwards": "executed"}
		if policy.Required {
			published["key"] = "required"
		}
		if policy.FailureMode == idempotency.FailClosed { // it moves money, and its keys leave tombstones
			published["afterwards"] = "refused"
		}
		require.Equal(t, published, operation.Extensions["x-idempotency"], route)
	})
	require.Empty(t, policies, "described")
}

// The strict reading of bodies refuses fractions, and the handlers' types have no place for unknown
// members: the description must agree to both.
func TestDescription_HasOnlyWholeNumbersAndClosedBodies(t *testing.T) {
	t.Parallel()
	described(t, func(route string, operation *openapi3.Operation) {
		if operation.RequestBody != nil && !isProviderEvent(route) { // the provider may tell more than we know
			requireStrict(t, route, operation.RequestBody.Value.Content.Get("application/json").Schema.Value)
		}
	})
}

func requireStrict(t *testing.T, where string, schema *openapi3.Schema) {
	t.Helper()
	require.False(t, schema.Type.Is(openapi3.TypeNumber), where)
	if schema.Type.Is(openapi3.TypeObject) {
		require.NotNil(t, schema.AdditionalProperties.Has, where)
		require.False(t, *schema.AdditionalProperties.Has, where)
	}
	for name, property := range schema.Properties {
		requireStrict(t, where+" "+name, property.Value)
	}
	if schema.Items != nil {
		requireStrict(t, where+" items", schema.Items.Value)
	}
}

func TestNew_RefusesARateLimitOfZero(t *testing.T) {
	t.Parallel()
	_, err := New(Config{OrderDeadline: time.Second})
	require.ErrorContains(t, err, "rate limit")
}

func TestNew_RefusesAnEmptySecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"whsec_", "whsec_not base64"} {
		_, err := New(Config{RateLimit: 1, OrderDeadline: time.Second, WebhookSecret: secret})
		require.ErrorContains(t, err, "webhook secret", secret)
	}
}
