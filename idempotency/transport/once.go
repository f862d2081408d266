package transport

import (
	"net/http"
	"strings"
)

// Once returns a RoundTripper that sends each request at most once. Use it around what asks a
// payment provider, if the answer to the first attempt decides, as in package authority.
//
// [http.Transport] sends a request again by itself when a kept connection breaks before the answer,
// if it can rewind the body: also a POST, if this has an Idempotency-Key. Then a provider may have
// executed the first copy, and its answer to the second one says nothing of that. An HTTP client of
// a provider's library may also retry: switch that off there. GET, HEAD, OPTIONS and TRACE change
// nothing and are left alone.
func Once(next http.RoundTripper) http.RoundTripper { return once{next} }

type once struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return o.next.RoundTrip(r)
	}
	sent := r.Clone(r.Context())
	sent.GetBody = nil
	if sent.Body == nil || sent.Body == http.NoBody {
		hideKey(sent.Header)
	}
	return o.next.RoundTrip(sent)
}

// hideKey writes the names of the key in lower case: net/http sends a request without a body again
// if it finds one of them. With an empty body instead, the request would be in chunks, which some
// servers refuse.
func hideKey(header http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := header[name]; ok {
			delete(header, name)
			header[strings.ToLower(name)] = values
		}
	}
}
