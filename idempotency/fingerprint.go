package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
)

// Fingerprint tells two requests with the same key apart: the SHA-256 over
// method, path, query and canonical body. It is comparable.
type Fingerprint [sha256.Size]byte

// fingerprintVersion is hashed first. Change it when the framing or the
// canonical form changes, so that an old fingerprint can't equal a new one.
const fingerprintVersion = "idempotency.fingerprint.v1"

// FingerprintOf hashes a request whose body has been read already. The query
// counts too, because another query is another request. Members of JSON
// objects called as one of excluded are left out, at any depth.
//
// A body is hashed in its canonical form (RFC 8785) where that form can't be
// shared with a body of another meaning. All others are hashed byte by byte,
// and then excluded has no effect: bodies that aren't JSON, that have duplicate
// member names, numbers that a double can't tell from their neighbours, or
// nesting beyond 10,000 levels.
//
// The path is the URL's at this point of the chain: put the middleware outside
// of handlers that rewrite it, such as [http.StripPrefix].
func FingerprintOf(r *http.Request, body []byte, excluded ...string) Fingerprint {
	form := "json"
	content, ok := canonical(body, excluded)
	if !ok {
		form, content = "raw", body
	}
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(fingerprintVersion), []byte(r.Method), []byte(r.URL.EscapedPath()),
		[]byte(r.URL.RawQuery), []byte(form), content,
	} {
		// Each part after its length: no two lists of parts share a framing.
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash never fails
		h.Write(part)
	}
	return Fingerprint(h.Sum(nil))
}

// String gives 64 hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// ParseFingerprint is the inverse of String.
func ParseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	if len(s) != hex.EncodedLen(len(f)) {
		return f, fmt.Errorf("parse fingerprint: %d characters instead of %d", len(s), hex.EncodedLen(len(f)))
	}
	if _, err := hex.Decode(f[:], []byte(s)); err != nil {
		return Fingerprint{}, fmt.Errorf("parse fingerprint: %w", err)
	}
	return f, nil
}
