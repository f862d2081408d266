package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/idempotency"
)

// withKey returns a copy of the request with a key if it needs one. The key of a redirected request
// (307, 308) follows from that of the first one and the place: the same key would be refused at a
// server that knows it with another path, and a new one would act again when the caller repeats
// the first request.
func withKey(r *http.Request) *http.Request {
	if !changes(r.Method) {
		return r
	}
	first, key := origin(r), r.Header.Get(idempotency.HeaderKey)
	switch firstKey := first.Header.Get(idempotency.HeaderKey); {
	case first != r && firstKey != "" && (!hasKey(r) || key == firstKey): // http.Client copies the caller's
		sum := sha256.Sum256([]byte(firstKey + " " + r.URL.String()))
		key = hex.EncodeToString(sum[:16])
	case hasKey(r):
		return r
	default:
		key = idempotency.NewKey()
	}
	return withHeader(r, idempotency.HeaderKey, key)
}

func hasKey(r *http.Request) bool {
	return strings.TrimSpace(r.Header.Get(idempotency.HeaderKey)) != ""
}

// changes reports whether the method changes something. Also PUT and DELETE act twice if another
// request was between two copies of one.
func changes(method string) bool {
	switch strings.ToUpper(method) {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// isSafe follows RFC 9110, section 9.2.1.
func isSafe(method string) bool {
	switch strings.ToUpper(method) {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
