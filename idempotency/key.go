package idempotency

import (
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Names of the two headers.
const (
	// HeaderKey carries the client's key
	// (draft-ietf-httpapi-idempotency-key-header).
	HeaderKey = "Idempotency-Key"
	// HeaderReplay is "true" on an answer that was given before.
	HeaderReplay = "X-Idempotent-Replay"
)

// MaxKeyLength is the most characters that a key may have.
const MaxKeyLength = 255

// ParseKey reads the Idempotency-Key header: an RFC 9651 string ("abc") or a
// bare value (abc), which are the same key. present is false when there is no
// such header at all. A key is 1 to [MaxKeyLength] printable ASCII characters;
// anything else, a header that was sent twice included, is an error.
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
	case len(key) > MaxKeyLength:
		return "", keyTooLong()
	}
	return key, nil
}

// checkCharacters comes before unquoting, for messages that name the trouble.
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

// unquote decodes an RFC 9651 string, whose parameters don't belong to the key,
// and takes anything that doesn't begin with a quote as it is: the UUIDs and
// ULIDs that clients send bare mostly aren't structured field tokens. A comma in
// a bare value is how a proxy joins a header that was sent twice.
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
