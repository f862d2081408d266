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
	return keyName(HeaderKey).parse(h)
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

// keyName is what messages about a key call it: the name of its header.
type keyName string

func (n keyName) parse(h http.Header) (key string, present bool, err *Error) {
	values := h.Values(string(n))
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, n.malformed("must be sent once")
	}
	key, err = n.parseValue(strings.Trim(values[0], " \t"))
	return key, true, err
}

// parseValue checks the characters before it unquotes, so that the message names the problem.
func (n keyName) parseValue(value string) (string, *Error) {
	if err := n.checkCharacters(value); err != nil {
		return "", err
	}
	key, err := n.unquote(value)
	if err == nil {
		err = n.checkLength(key)
	}
	if err != nil {
		return "", err
	}
	return key, nil
}

// check is for a key that was not sent in a header.
func (n keyName) check(key string) *Error {
	if err := n.checkCharacters(key); err != nil {
		return err
	}
	return n.checkLength(key)
}

func (n keyName) checkCharacters(value string) *Error {
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ' || c == 0x7f:
			return n.malformed("must not contain control characters")
		case c > 0x7f:
			return n.malformed("must consist of ASCII characters")
		}
	}
	return nil
}

func (n keyName) checkLength(key string) *Error {
	switch {
	case key == "":
		return n.malformed("must not be empty")
	case len(key) > maxKeyLength:
		return &Error{Status: http.StatusBadRequest, Code: CodeKeyTooLong, Message: string(n) + " must not exceed 255 characters"}
	}
	return nil
}

// unquote decodes an RFC 9651 string, whose parameters do not belong to the key. A value that
// does not begin with a quote is taken as it is: most of the UUIDs and ULIDs that clients send
// bare are not structured field tokens. A comma in a bare value is how a proxy joins a header
// that was sent twice.
func (n keyName) unquote(value string) (string, *Error) {
	if !strings.HasPrefix(value, `"`) {
		if strings.Contains(value, ",") {
			return "", n.malformed("must be sent once, and quoted if it contains a comma")
		}
		return value, nil
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", n.malformed("is not a well-formed quoted string")
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", n.malformed("is not a well-formed quoted string")
	}
	return key, nil
}

// missing has a cause if the key should have been made of the request's content.
func (n keyName) missing(cause error) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeKeyMissing, Message: string(n) + " header is required", Err: cause}
}

func (n keyName) malformed(text string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: CodeKeyMalformed, Message: string(n) + " " + text}
}
