package idempotency

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
)

// NewKey draws a key for a request: a UUID of version 4 (RFC 9562).
func NewKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// requestBody opens a request's body for each attempt.
type requestBody struct {
	open       func() (io.ReadCloser, error)
	repeatable bool
}

// bodyOf takes the request's body over. One that can't be had again is buffered;
// one that is too large for that can be sent only once.
func bodyOf(r *http.Request, limit int64) (*requestBody, error) {
	original := r.Body
	switch {
	case original == nil || original == http.NoBody:
		return &requestBody{func() (io.ReadCloser, error) { return original, nil }, true}, nil
	case r.GetBody != nil:
		return &requestBody{r.GetBody, true}, original.Close()
	}
	data, err := io.ReadAll(io.LimitReader(original, limit+1))
	if err != nil {
		_ = original.Close()
		return nil, err
	}
	if int64(len(data)) > limit {
		rest := struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), original), original}
		return &requestBody{func() (io.ReadCloser, error) { return rest, nil }, false}, nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return &requestBody{open, true}, original.Close()
}
