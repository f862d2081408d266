package idempotency

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/idempotency/internal/canonical"
)

// Content chooses what a key is made of, for callers that send no key, or a new one with each
// try. The zero value chooses the whole request.
//
// Two requests with equal content are one. If a customer may want the same thing twice, choose
// something that differs then and not between tries, such as the number of the basket, or keep
// the answers only for as long as a caller retries ([Policy].TTL).
type Content struct {
	// Members are names of members of the JSON object that is the request. A request without
	// one of them, or with null for it, has no key: all such requests would be equal.
	Members []string
	// Excluded are paths of members that are left out, as in [Policy].ExcludedFields.
	Excluded []string
	// Headers and Query are names of headers and of query parameters of an HTTP request, which
	// has to have all of them, and not empty. Without Query, the whole query counts.
	Headers, Query []string
	// Always replaces the keys that clients send.
	Always bool
}

// contentVersion is hashed first, as fingerprintVersion is.
const contentVersion = "idempotency.content.v1"

// Key returns the key of a request that is not an HTTP request: a JSON value, or a []byte, as for
// [Do]. It fails if a member is missing, or if Headers or Query are set.
func (c Content) Key(request any) (string, error) {
	if len(c.Headers)+len(c.Query) > 0 {
		return "", errors.New("idempotency: headers and query parameters are content of HTTP requests alone")
	}
	content, err := contentOf(request)
	if err != nil {
		return "", err
	}
	parts, err := c.parts(content)
	if err != nil {
		return "", err
	}
	key, _ := keyOf(parts)
	return key, nil
}

// contentOf returns a request as bytes. Bytes stay as they are.
func contentOf(request any) ([]byte, error) {
	if content, ok := request.([]byte); ok {
		return content, nil
	}
	content, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("idempotency: write the request as JSON: %w", err)
	}
	return content, checkWritten(request)
}

// ofRequest returns the key and the fingerprint of an HTTP request.
func (c Content) ofRequest(r *http.Request, body []byte) (string, Fingerprint, error) {
	parts, err := c.parts(body)
	if err != nil {
		return "", Fingerprint{}, err
	}
	parts = append(append(parts, strings.ToUpper(r.Method), r.URL.EscapedPath()), operation(r.Header)...)
	if len(c.Query) == 0 {
		parts = append(parts, r.URL.RawQuery)
	}
	query := r.URL.Query()
	if parts, err = choose(parts, "query parameter", c.Query, func(name string) []string { return query[name] }); err != nil {
		return "", Fingerprint{}, err
	}
	if parts, err = choose(parts, "header", c.Headers, func(name string) []string { return valuesOf(r, name) }); err != nil {
		return "", Fingerprint{}, err
	}
	key, fingerprint := keyOf(parts)
	return key, fingerprint, nil
}

// choose appends the values of each name after their number, so that no two choices are the same
// parts.
func choose(parts []string, kind string, names []string, get func(string) []string) ([]string, error) {
	for _, name := range names {
		values := get(name)
		if strings.Join(values, "") == "" {
			return nil, fmt.Errorf("idempotency: the request has no value for the %s %q", kind, name)
		}
		parts = append(append(parts, name, strconv.Itoa(len(values))), values...)
	}
	return parts, nil
}

// parts returns the chosen content of a request or body.
func (c Content) parts(content []byte) ([]string, error) {
	form, ok := canonical.Form(content, c.Excluded)
	switch {
	case len(c.Members) > 0:
		return c.members(form, ok)
	case ok:
		return []string{"json", string(form)}, nil
	}
	return []string{"raw", string(content)}, nil
}

func (c Content) members(form []byte, ok bool) ([]string, error) {
	var members map[string]json.RawMessage
	if !ok || json.Unmarshal(form, &members) != nil {
		return nil, errors.New("idempotency: the request is not a JSON object")
	}
	parts := []string{"members"}
	for _, name := range c.Members {
		value, found := members[name]
		if !found || string(value) == "null" {
			return nil, fmt.Errorf("idempotency: the request has no value for the member %q", name)
		}
		parts = append(parts, name, string(value))
	}
	return parts, nil
}

// keyOf returns a key that names the content, and the fingerprint of it alone: what
// was not chosen may differ.
func keyOf(parts []string) (string, Fingerprint) {
	h := sha256.New()
	h.Write(appendParts(nil, contentVersion))
	h.Write(appendParts(nil, parts...))
	fingerprint := Fingerprint(h.Sum(nil))
	return "content-" + fingerprint.String(), fingerprint
}
