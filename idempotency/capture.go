package idempotency

import (
	"fmt"
	"maps"
	"net/http"
)

// capture holds a response back until its record is written. It deliberately
// has no Unwrap: a handler that could reach Flush, Hijack or the connection
// through [http.ResponseController] could send bytes that nobody has kept.
//
// Once a body passes the limit, overflow is called, and from there on the
// response streams to the client.
type capture struct {
	w        http.ResponseWriter
	limit    int
	overflow func() // settles the record; called at most once, before any byte is sent

	code      int         // 0 until the header is written
	header    http.Header // as it was at that moment
	body      []byte
	streaming bool
	replayed  func() bool
}

// Header is the outer writer's: handlers see, and may remove, what middleware
// outside of us has set.
func (c *capture) Header() http.Header { return c.w.Header() }

// WriteHeader keeps the first final status. Informational ones (1xx) are not
// passed on, and superfluous calls have no effect.
func (c *capture) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code)) // as net/http does, while the key can still be released
	}
	if c.code != 0 || code < 200 {
		return
	}
	c.code, c.header = code, c.w.Header().Clone()
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.code == http.StatusNoContent || c.code == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !c.streaming && len(c.body)+len(p) > c.limit {
		c.overflow()
		c.streaming = true
		if err := c.send(); err != nil {
			return 0, err
		}
	}
	if c.streaming {
		return c.w.Write(p)
	}
	c.body = append(c.body, p...)
	return len(p), nil
}

// send writes out what was held back. Headers that were set after WriteHeader
// are dropped, as net/http does.
func (c *capture) send() error {
	outer := c.w.Header()
	clear(outer)
	maps.Copy(outer, c.header)
	if c.replayed() {
		outer.Set(HeaderReplay, "true")
	}
	c.w.WriteHeader(c.code)
	if len(c.body) == 0 {
		return nil
	}
	_, err := c.w.Write(c.body)
	c.body = nil
	return err
}
