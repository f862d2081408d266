package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
)

const (
	// attempts and pause outlast a service that has just been driven to its limits.
	attempts, pause = 60, time.Second
	// idleTimeout is below what nginx and the replicas grant (60 s and more), so that no request
	// meets a connection that is just being closed.
	idleTimeout = 20 * time.Second
	// maxIdle keeps every connection that a burst has opened.
	maxIdle = 10_000
)

// ErrNotFound says that there is no such resource.
var ErrNotFound = errors.New("not found")

// API is the service for one account. It repeats a request until it is answered. Safe for
// concurrent use.
type API struct {
	BaseURL, APIKey string
	HTTP            *http.Client
}

// NewAPI gives up on a request, with all its attempts, after the patience.
func NewAPI(baseURL, apiKey string, patience time.Duration) API {
	return API{baseURL, apiKey, &http.Client{Timeout: patience, Transport: &transport.Transport{MaxAttempts: attempts, MaxDelay: pause}}}
}

// Header is that of a request with a key, or with "" of one without.
func (a API) Header(key string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + a.APIKey}, "Content-Type": {"application/json"}}
	if key != "" {
		h.Set(idempotency.HeaderKey, key)
	}
	return h
}

// Get reads a resource. It returns [ErrNotFound] if there is none.
func (a API) Get(ctx context.Context, path string, resource any) error {
	return a.send(ctx, http.MethodGet, path, "", nil, resource)
}

// Post creates a resource, and returns its ID.
func (a API) Post(ctx context.Context, path, key string, body []byte) (id string, err error) {
	var resource struct{ ID string }
	err = a.send(ctx, http.MethodPost, path, key, body, &resource)
	return resource.ID, err
}

// Product creates or replaces a product. The price is in minor units.
func (a API) Product(ctx context.Context, sku, name string, price, stock int64) error {
	body := Encode(client.ProductWrite{Name: name, Price: Dollars(price), Stock: stock})
	return a.send(ctx, http.MethodPut, "/products/"+sku, "", body, nil)
}

// Customer creates a customer and puts money, in minor units, into the wallet.
func (a API) Customer(ctx context.Context, name string, money int64) (id string, err error) {
	id, err = a.Post(ctx, "/customers", name, Encode(client.CustomerCreate{Name: name, Email: name + "@example.com"}))
	if err == nil && money > 0 {
		_, err = a.Post(ctx, "/customers/"+id+"/top-ups", name+"-top-up", Encode(client.TopUpCreate{Amount: Dollars(money)}))
	}
	return id, err
}

// Dollars are so many cents.
func Dollars(amount int64) client.Money { return client.Money{Amount: amount, Currency: "USD"} }

// Encode makes JSON of a body of strings and numbers.
func Encode(body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // see above
	}
	return raw
}

func (a API) send(ctx context.Context, method, path, key string, body []byte, resource any) error {
	return exchange(ctx, a.HTTP, method, a.BaseURL+"/v1"+path, a.Header(key), body, resource)
}

// exchange sends a request, and decodes the answer: JSON, or text if it goes into a string.
func exchange(ctx context.Context, client *http.Client, method, url string, header http.Header, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	text, isText := into.(*string)
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusNotFound:
		err = ErrNotFound
	case answer.StatusCode/100 != 2:
		err = fmt.Errorf("%s %s", answer.Status, raw)
	case isText:
		*text = string(raw)
	case into != nil:
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, r.URL.Path, err)
	}
	return nil
}

// Client sends every request once: without the Transport net/http would send a request with an
// Idempotency-Key again by itself, if its connection had gone. A request may take that long.
func Client(patience time.Duration) *http.Client {
	return &http.Client{Timeout: patience, Transport: &transport.Transport{Base: Connections(), MaxAttempts: 1, AttemptTimeout: -1}}
}

// Connections keeps every connection that a burst has opened.
func Connections() *http.Transport {
	return &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTimeout}
}

// ProblemCode is the code in the body of an error's answer. Another body has none.
func ProblemCode(body []byte) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem)
	return problem.Code
}

// askTimeout bounds a request of Ask.
const askTimeout = 10 * time.Second

// Ask sends a request to what a server has for operators and tests, such as metrics and switches,
// and decodes what it answers.
func Ask(ctx context.Context, method, url, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return exchange(ctx, http.DefaultClient, method, url, http.Header{"Connection": {"close"}}, []byte(body), into)
}

// Metrics reads the metrics of a replica that have no labels, at its address for operators.
func Metrics(ctx context.Context, url string) (map[string]float64, error) {
	var text string
	err := Ask(ctx, http.MethodGet, url+"/metrics", "", &text)
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = number
		}
	}
	return values, err
}
