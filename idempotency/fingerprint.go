package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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
	frame, content := framed(make([]byte, 0, 256), body, excluded, strings.ToUpper(r.Method), r.URL.EscapedPath(), r.URL.RawQuery)
	h := sha256.New()
	h.Write(frame)
	h.Write(content)
	for _, name := range headers {
		for _, value := range r.Header.Values(name) {
			h.Write(appendParts(nil, strings.ToLower(name), value))
		}
	}
	return Fingerprint(h.Sum(nil))
}

// fingerprintOfContent has no method: it is equal to that of no HTTP request.
func fingerprintOfContent(content []byte, excluded []string) Fingerprint {
	frame, content := framed(make([]byte, 0, 256), content, excluded, "", "", "")
	return sha256.Sum256(append(frame, content...))
}

// framed appends what is hashed before the content to frame, and returns the content in the form
// that is hashed.
func framed(frame, content []byte, excluded []string, method, path, query string) (before, hashed []byte) {
	form := "raw"
	if c, ok := canonical.Form(content, excluded); ok {
		form, content = "json", c
	}
	frame = appendParts(frame, fingerprintVersion, method, path, query, form)
	return binary.BigEndian.AppendUint64(frame, uint64(len(content))), content
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
