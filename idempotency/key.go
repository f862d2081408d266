package idempotency

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Names of the two headers.
const (
	// HeaderKey carries the client's key
	// (draft-ietf-httpapi-idempotency-key-header).
	HeaderKey = "Idempotency-Key"
	// HeaderReplay is "true" on a replay.
	HeaderReplay = "X-Idempotent-Replay"
)

// maxKeyLength is in characters.
const maxKeyLength = 255

// ParseKey reads the Idempotency-Key header: an RFC 9651 string ("abc") or a bare value (abc),
// which are the same key. present is false if there is no such header. A key has 1 to 255
// printable ASCII characters; everything else is an error, also a header that was sent twice.
func ParseKey(h http.Header) (key string, present bool, err *Error) {
	values := h.Values(HeaderKey)
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, keyMalformed("Idempotency-Key must be sent once")
	}
	key, err = parseKeyValue(strings.Trim(values[0], " \t"))
	return key, true, err
}

func parseKeyValue(value string) (string, *Error) {
	if err := checkCharacters(value); err != nil {
		return "", err
	}
	key, err := unquote(value)
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", keyMalformed("Idempotency-Key must not be empty")
	case len(key) > maxKeyLength:
		return "", keyTooLong()
	}
	return key, nil
}

// NewKey returns a random key for a request: a UUID of version 4 (RFC 9562).
func NewKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// checkCharacters comes before unquoting, so that the message names the problem.
func checkCharacters(value string) *Error {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ' || c == 0x7f:
			return keyMalformed("Idempotency-Key must not contain control characters")
		case c > 0x7f:
			return keyMalformed("Idempotency-Key must consist of ASCII characters")
		}
	}
	return nil
}

// unquote decodes an RFC 9651 string, whose parameters do not belong to the key. A value that
// does not begin with a quote is taken as it is: most of the UUIDs and ULIDs that clients send
// bare are not structured field tokens. A comma in a bare value is how a proxy joins a header
// that was sent twice.
func unquote(value string) (string, *Error) {
	if !strings.HasPrefix(value, `"`) {
		if strings.Contains(value, ",") {
			return "", keyMalformed("Idempotency-Key must be sent once, and quoted if it contains a comma")
		}
		return value, nil
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", keyMalformed("Idempotency-Key is not a well-formed quoted string")
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", keyMalformed("Idempotency-Key is not a well-formed quoted string")
	}
	return key, nil
}
