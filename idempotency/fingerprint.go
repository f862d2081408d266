package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/idempotency/internal/canonical"
)

// Fingerprint is the SHA-256 over method, path, query and canonical body. Two requests with
// the same key are the same request if their fingerprints are equal.
type Fingerprint [sha256.Size]byte

// fingerprintVersion is hashed first. Change it when the framing or the canonical form
// changes, so that an old fingerprint cannot equal a new one.
const fingerprintVersion = "idempotency.fingerprint.v1"

// FingerprintOf hashes a request whose body has been read. The query counts, because another
// query is another request; the case of the method does not. Members of JSON objects with one
// of the excluded names are left out, at any depth.
//
// A body is hashed in its canonical form (RFC 8785) if no body of another meaning has the same
// form. All others are hashed byte by byte, and excluded has no effect on them: bodies that
// are not JSON, and JSON with duplicate member names, numbers that a double cannot hold, or
// nesting beyond 1,000 levels.
//
// The path is the URL's at this point of the chain: put the middleware outside handlers that
// rewrite it, such as [http.StripPrefix].
func FingerprintOf(r *http.Request, body []byte, excluded ...string) Fingerprint {
	return fingerprint(r, body, excluded, nil)
}

// fingerprint is FingerprintOf with the named headers after the body.
func fingerprint(r *http.Request, body []byte, excluded, headers []string) Fingerprint {
	h := newHash(body, excluded, strings.ToUpper(r.Method), r.URL.EscapedPath(), r.URL.RawQuery)
	for _, name := range headers {
		for _, value := range r.Header.Values(name) {
			h.Write(appendParts(nil, strings.ToLower(name), value))
		}
	}
	return Fingerprint(h.Sum(nil))
}

// fingerprintOfContent has no method: it is equal to that of no HTTP request.
func fingerprintOfContent(content []byte, excluded []string) Fingerprint {
	return Fingerprint(newHash(content, excluded, "", "", "").Sum(nil))
}

// newHash has hashed the framing and the content.
func newHash(content []byte, excluded []string, method, path, query string) hash.Hash {
	form := "raw"
	if c, ok := canonical.Form(content, excluded); ok {
		form, content = "json", c
	}
	prefix := appendParts(make([]byte, 0, 256), fingerprintVersion, method, path, query, form)
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(prefix, uint64(len(content))))
	h.Write(content)
	return h
}

// appendParts appends each part after its length, so that no two lists of parts are the same bytes.
func appendParts(to []byte, parts ...string) []byte {
	for _, part := range parts {
		to = append(binary.BigEndian.AppendUint64(to, uint64(len(part))), part...)
	}
	return to
}

// String returns 64 hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// parseFingerprint is the inverse of String.
func parseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	if len(s) != hex.EncodedLen(len(f)) {
		return f, fmt.Errorf("parse fingerprint: %d characters instead of %d", len(s), hex.EncodedLen(len(f)))
	}
	if _, err := hex.Decode(f[:], []byte(s)); err != nil {
		return Fingerprint{}, fmt.Errorf("parse fingerprint: %w", err)
	}
	return f, nil
}
