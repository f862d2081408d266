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

// Fingerprint is the SHA-256 over method, path, query, canonical body and media type. Two requests
// with the same key are the same request if their fingerprints are equal.
type Fingerprint [sha256.Size]byte

// fingerprintVersion is hashed first. Change it when the framing or the canonical form
// changes, so that an old fingerprint cannot equal a new one.
const fingerprintVersion = "idempotency.fingerprint.v1"

// FingerprintOf hashes a request whose body has been read. The query counts, because another
// query is another request; the case of the method does not. The members of JSON objects to which
// an excluded path leads are left out, see [Policy].ExcludedFields.
//
// The media type counts without its parameters, unless it is application/json or absent: a merge
// patch is another request than a JSON patch. So do the headers that replace the method:
// X-HTTP-Method-Override, X-HTTP-Method and X-Method-Override.
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

// fingerprint is FingerprintOf with the named headers between the body and the operation.
func fingerprint(r *http.Request, body []byte, excluded, headers []string) Fingerprint {
	frame, content := framed(make([]byte, 0, 256), body, excluded, strings.ToUpper(r.Method), r.URL.EscapedPath(), r.URL.RawQuery)
	h := sha256.New()
	h.Write(frame)
	h.Write(content)
	h.Write(headerParts(r, headers))
	h.Write(appendParts(nil, operation(r.Header)...))
	return Fingerprint(h.Sum(nil))
}

// headerParts are the named headers where they are sent.
func headerParts(r *http.Request, names []string) (parts []byte) {
	for _, name := range names {
		for _, value := range valuesOf(r, name) {
			parts = appendParts(parts, strings.ToLower(name), value)
		}
	}
	return parts
}

// valuesOf returns the values of a header. net/http has moved Host out of the others.
func valuesOf(r *http.Request, name string) []string {
	if strings.EqualFold(name, "Host") && r.Host != "" {
		return []string{r.Host}
	}
	return r.Header.Values(name)
}

// overrides are the usual headers that replace the method.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// operation returns the names and values of what chooses the operation besides method, path and
// query. It is empty for most requests: their fingerprints are those of earlier builds. No header
// has the name "media type".
func operation(h http.Header) []string {
	var parts []string
	for _, value := range h["Content-Type"] {
		mediaType, _, _ := strings.Cut(value, ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
		if mediaType != "" && mediaType != "application/json" {
			parts = append(parts, "media type", mediaType)
		}
	}
	for _, name := range overrides {
		for _, method := range h[name] {
			parts = append(parts, name, strings.ToUpper(method))
		}
	}
	return parts
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
