package transport

import (
	"bytes"
	"io"
	"net/http"
)

// requestBody opens a request's body for each attempt.
type requestBody struct {
	open       func() (io.ReadCloser, error)
	repeatable bool
}

// bodyOf takes over the body of the request. A body that cannot be read again is buffered;
// one that is too large for the buffer can be sent only once.
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
