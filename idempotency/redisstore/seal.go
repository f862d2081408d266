package redisstore

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/idempotency"
)

// WithSecrets signs each record with an HMAC-SHA-256 (RFC 2104) over its name in Redis and all of
// its bytes, cut to 128 bits. The first secret signs, all of them verify. A record that was
// changed, planted, or copied to another name is [idempotency.ErrCorrupt]; so is one without a
// signature, unless [WithUnsigned] is given. It is not noticed if a record is deleted, or if an
// older one of the same key is put back. An empty secret is ignored.
func WithSecrets(secrets ...[]byte) Option {
	return func(s *Store) {
		for _, secret := range secrets {
			if len(secret) > 0 {
				s.seals = append(s.seals, newSeal(secret))
			}
		}
	}
}

// WithUnsigned accepts records without a signature, too: until all instances sign, and the records
// from before have expired.
func WithUnsigned() Option {
	return func(s *Store) { s.unsigned = true }
}

// A signed record has one more member at the end of its metadata: ,"mac":"22 characters".
const (
	macMember = `,"mac":"`
	macBytes  = 16
	macLength = len(macMember) + (macBytes*8+5)/6 + len(`"`)
)

// seal makes and checks signatures with one secret. It is safe for concurrent use.
type seal struct{ hashes sync.Pool }

func newSeal(secret []byte) *seal {
	return &seal{sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
}

// mac is the signature of an unsigned record under a name.
func mac[T string | []byte](s *seal, name string, record T) []byte {
	h := s.hashes.Get().(hash.Hash)
	defer s.hashes.Put(h)
	h.Reset()
	_, _ = io.WriteString(h, name) // a hash never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(record))
	return h.Sum(nil)[:macBytes]
}

// sign returns the bytes that are stored for a record under a name.
func (s *seal) sign(name string, record []byte) []byte {
	end := bytes.IndexByte(record, '\n') - len("}")
	signed := make([]byte, 0, len(record)+macLength)
	signed = append(append(signed, record[:end]...), macMember...)
	signed = base64.RawURLEncoding.AppendEncode(signed, mac(s, name, record))
	return append(append(signed, '"'), record[end:]...)
}

// verify returns the record that a stored text holds, if one of our secrets has signed it for this
// name.
func (s *Store) verify(name, stored string) (record string, err error) {
	begin := strings.IndexByte(stored, '\n') - len("}") - macLength
	if begin < 0 || !strings.HasPrefix(stored[begin:], macMember) {
		if s.unsigned {
			return stored, nil
		}
		return "", fmt.Errorf("%w: it has no signature", idempotency.ErrCorrupt)
	}
	text := stored[begin+len(macMember) : begin+macLength-len(`"`)]
	var signature [macBytes]byte
	if _, err := base64.RawURLEncoding.Strict().Decode(signature[:], []byte(text)); err != nil {
		return "", fmt.Errorf("%w: its signature: %w", idempotency.ErrCorrupt, err)
	}
	record = stored[:begin] + stored[begin+macLength:]
	for _, seal := range s.seals {
		if hmac.Equal(signature[:], mac(seal, name, record)) {
			return record, nil
		}
	}
	return "", fmt.Errorf("%w: it was not signed for this key", idempotency.ErrCorrupt)
}

// decode reads the record that is stored for a key.
func (s *Store) decode(scope, key, stored string) (idempotency.Record, error) {
	var record idempotency.Record
	if len(s.seals) > 0 {
		var err error
		if stored, err = s.verify(s.keyOf(scope, key), stored); err != nil {
			return record, err
		}
	}
	if err := record.UnmarshalString(stored); err != nil {
		return record, err
	}
	named := record.Scope != "" || record.Key != "" // an older version did not name them
	if named && (record.Scope != scope || record.Key != key) {
		return record, fmt.Errorf("%w: it is another key's", idempotency.ErrCorrupt)
	}
	return record, nil
}
