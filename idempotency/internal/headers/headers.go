// Package headers encodes response headers as JSON without losing a byte. Header values may
// hold any byte above 0x7f (RFC 9110, section 5.5), and JSON strings hold Unicode: each byte
// is therefore written as the character with its number, as in ISO 8859-1.
package headers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Marshal returns a JSON object of arrays of strings; nil is an empty object.
func Marshal(header http.Header) ([]byte, error) {
	if header == nil {
		return []byte("{}"), nil
	}
	data, err := json.Marshal(convert(header, widen))
	if err != nil {
		return nil, fmt.Errorf("encode response headers: %w", err)
	}
	return data, nil
}

// Unmarshal is the inverse of Marshal.
func Unmarshal(data []byte) (http.Header, error) {
	var header http.Header
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, fmt.Errorf("decode response headers: %w", err)
	}
	for _, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r > 0xff }) {
				return nil, errors.New("decode response headers: a character is not a byte")
			}
		}
	}
	return convert(header, narrow), nil
}

// Size returns how many bytes the headers take on the wire.
func Size(header http.Header) (bytes int) {
	for name, values := range header {
		for _, value := range values {
			bytes += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return bytes
}

// convert copies only headers that are not ASCII, which are rare.
func convert(header http.Header, each func(string) string) http.Header {
	if isASCII(header) {
		return header
	}
	converted := make(http.Header, len(header))
	for name, values := range header {
		converted[name] = make([]string, len(values))
		for i, value := range values {
			converted[name][i] = each(value)
		}
	}
	return converted
}

func isASCII(header http.Header) bool {
	for _, values := range header {
		for _, value := range values {
			for i := range len(value) {
				if value[i] > 0x7f {
					return false
				}
			}
		}
	}
	return true
}

func widen(value string) string {
	var b strings.Builder
	for i := range len(value) {
		b.WriteRune(rune(value[i]))
	}
	return b.String()
}

func narrow(value string) string {
	var b strings.Builder
	for _, r := range value {
		b.WriteByte(byte(r)) //nolint:gosec // Unmarshal has checked the range
	}
	return b.String()
}
