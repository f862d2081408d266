package transport_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
)

// A client whose requests have keys and are repeated until there is an answer.
// A generated client takes it the same way, such as
// api.NewClientWithResponses(url, api.WithHTTPClient(client)).
func ExampleTransport() {
	attempts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if attempts++; attempts == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()

	client := &http.Client{Transport: &transport.Transport{
		BaseDelay: time.Millisecond,
		OnRetry: func(attempt int, reason string, _ time.Duration) {
			fmt.Printf("attempt %d: %s\n", attempt, reason)
		},
	}}
	defer client.CloseIdleConnections()
	response, err := client.Post(server.URL+"/orders", "application/json", strings.NewReader(`{"sku":"tee"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	fmt.Println(response.StatusCode)

	// Output:
	// attempt 1: 503 Service Unavailable
	// 201
}
