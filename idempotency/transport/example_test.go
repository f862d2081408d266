package transport_test

import (
	"errors"
	"fmt"
	"io"
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
		OnRetry: func(r transport.Retry) {
			fmt.Printf("attempt %d: %s\n", r.Attempt, r.Reason)
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

// A caller that goes on when a Transport has given up, as after an outage of minutes. It sends the
// same request with the key of the error, so what was executed is not executed again. A body over
// MaxResponse that breaks off is handled in the same way.
func ExampleError() {
	topUps, executed := 0, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if !executed[key] { // the middleware does this for a service
			executed[key], topUps = true, topUps+1
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "the connection breaks")
			return
		}
		_, _ = io.WriteString(w, "topped up")
	}))
	defer server.Close()

	client := &http.Client{Transport: &transport.Transport{MaxAttempts: 1}} // gives up at once
	defer client.CloseIdleConnections()
	topUp := func(key string) (answer []byte, err error) {
		r, err := http.NewRequest(http.MethodPost, server.URL+"/top-ups", strings.NewReader(`{"amount":5}`))
		if err != nil {
			return nil, err
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		response, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		return io.ReadAll(response.Body)
	}

	answer, err := topUp("")
	var unanswered *transport.Error
	for errors.As(err, &unanswered) { // a program pauses here, and gives up some day
		answer, err = topUp(unanswered.Key)
	}
	fmt.Printf("%s, %v, %d top-up\n", answer, err, topUps)

	// Output: topped up, <nil>, 1 top-up
}
