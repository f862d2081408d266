package idempotency

import "net/http"

// headerFilter holds the canonical names of the headers that are kept.
type headerFilter map[string]bool

// defaultHeaders describe the answer itself. [WithHeaderAllowList] lists them, too.
var defaultHeaders = []string{
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
	"Content-Range", "Content-Security-Policy", "Content-Type", "Cross-Origin-Opener-Policy",
	"Cross-Origin-Resource-Policy", "ETag", "Last-Modified", "Link", "Location", "Referrer-Policy", "Vary",
	"X-Content-Type-Options", "X-Frame-Options",
}

// neverKept belong to one client (Set-Cookie), to one connection or transfer (RFC 9110,
// section 7.6.1), or are written by the middleware.
var neverKept = []string{
	"Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length", "Date", HeaderReplay, headerReplayed, headerPreferenceApplied,
}

// onlyLocation is what a client needs of an answer that was too large to keep.
var onlyLocation = headerFilter{"Location": true}

func newHeaderFilter(names []string) headerFilter {
	f := make(headerFilter, len(names))
	for _, name := range names {
		f[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range neverKept {
		delete(f, name)
	}
	return f
}

// pick returns a deep copy of the allowed headers, or nil if there are none. A name without values
// is copied, too: it prevents net/http from guessing a Content-Type.
func (f headerFilter) pick(h http.Header) http.Header {
	var picked http.Header
	for name, values := range h {
		if !f[http.CanonicalHeaderKey(name)] {
			continue
		}
		if picked == nil {
			picked = http.Header{}
		}
		picked[name] = append([]string(nil), values...)
	}
	return picked
}
