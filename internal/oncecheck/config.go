package oncecheck

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/oncepay/oncepay/internal/cardnumber"
)

// Defaults of a Config's zero values.
const (
	DefaultKeyHeader   = "Idempotency-Key"
	DefaultMaxRequests = 500              // over twice what all rules need at a service that breaks none
	DefaultRate        = 50               // requests per second; those at once wait until all may be sent
	DefaultAttempt     = 10 * time.Second // is the longest that one answer is waited for
	DefaultPatience    = 20 * time.Second // is the longest that a request is repeated
)

// Unique is replaced in the URL, the headers and the body of a request by a text that no other
// request has, and that its retries have, too.
const Unique = "{{unique}}"

// Request is an HTTP request without its key.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        string
}

// Config says what is checked. Only Request is needed; a rule that needs more is not decided.
type Config struct {
	Request     Request
	KeyHeader   string                               // empty: [DefaultKeyHeader]
	OtherBody   string                               // a body with another meaning; empty: the first number or text of a JSON body is changed
	OtherURL    string                               // of another operation that takes the same body
	OtherCaller http.Header                          // headers that make the request another caller's
	Count       func(context.Context) (int64, error) // how many effects there are now; nil: they are not counted
	Contract    *Contract                            // what the API publishes about its keys; nil: nothing
	Between     func(context.Context) error          // between a request and its retry; nil: nothing
	Insecure    bool                                 // certificates are not verified
	Only        []string                             // names of rules; empty: all
	Progress    func(text string)                    // shows what is being done, and nothing in the end; nil: nobody is told
	MaxRequests int                                  // 0: [DefaultMaxRequests]
	Rate        int                                  // requests per second; 0: [DefaultRate]
	Attempt     time.Duration                        // 0: [DefaultAttempt]
	Patience    time.Duration                        // 0: [DefaultPatience]
}

// check returns what is wrong with a Config, in a sentence for its author, and sets defaults.
func (c *Config) check() error {
	c.KeyHeader = cmp.Or(c.KeyHeader, DefaultKeyHeader)
	c.MaxRequests, c.Rate = cmp.Or(c.MaxRequests, DefaultMaxRequests), cmp.Or(c.Rate, DefaultRate)
	c.Attempt, c.Patience = cmp.Or(c.Attempt, DefaultAttempt), cmp.Or(c.Patience, DefaultPatience)
	c.Request.Method = cmp.Or(c.Request.Method, http.MethodPost)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Request.Header == nil {
		c.Request.Header = http.Header{}
	}
	u, err := url.Parse(c.Request.URL)
	theirs := c.Request.Header.Clone()
	maps.Copy(theirs, c.OtherCaller)
	others := Request{URL: c.OtherURL, Header: c.OtherCaller, Body: c.OtherBody}
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("the URL has to be like http://127.0.0.1:8080/v1/orders, and is %q", c.Request.URL)
	case c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead:
		return fmt.Errorf("%s changes nothing; name a request that does, such as with -X POST", c.Request.Method)
	case c.OtherURL != "" && hostname(c.OtherURL) != u.Hostname():
		return fmt.Errorf("--other-url has to be at the same host as the request, and is %q", c.OtherURL)
	// The rules of another request that is the same one would be broken by every API.
	case c.OtherURL == c.Request.URL || (c.OtherBody != "" && isSame(c.OtherBody, c.Request.Body)):
		return errors.New("--other-url or --other-body is that of the request; give another one")
	case len(c.OtherCaller) > 0 && maps.EqualFunc(theirs, c.Request.Header, slices.Equal):
		return errors.New("--other-header has the values of the request; give another caller's")
	case cardnumber.Contains(fmt.Sprint(c.Request, others)):
		return errors.New("the request contains what looks like a card number; use a token of the provider's sandbox instead")
	}
	return known(c.Only)
}

// isSame reports whether two bodies are the same, or the same JSON.
func isSame(a, b string) bool {
	return a == b || gjson.Valid(a) && gjson.Valid(b) && reflect.DeepEqual(gjson.Parse(a).Value(), gjson.Parse(b).Value())
}

// with returns the request with all places of [Unique] filled, and with a header of its own.
func (r Request) with(unique string) Request {
	fill := strings.NewReplacer(Unique, unique).Replace
	r.URL, r.Body, r.Header = fill(r.URL), fill(r.Body), r.Header.Clone()
	for _, values := range r.Header {
		for i := range values {
			values[i] = fill(values[i])
		}
	}
	return r
}

// transport uses each connection once: net/http would send a request with a key again by itself
// when a connection that was used before turns out to be closed.
func (c *Config) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: c.Insecure}, //nolint:gosec // the user's --insecure
	}
}

func letters() string { return strings.ToLower(rand.Text()) }
