package idempotency

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// capture holds a response back until its record is finished. It has no Unwrap on purpose: a
// handler that reached Flush, Hijack or the connection through [http.ResponseController]
// could send bytes that are not kept.
//
// When the answer passes the limit, overflow is called, and from then on the response streams
// to the client.
type capture struct {
	w        http.ResponseWriter
	dialect  Dialect
	keep     headerFilter
	limit    int    // bytes of kept headers and body
	overflow func() // finishes the record; called at most once, before any byte is sent
	replayed func() bool
	outer    http.Header // headers that may be kept, as middleware further out had set them

	code      int         // 0 until the header is written
	header    http.Header // as it was at that moment
	kept      http.Header // the part of it that is kept
	body      []byte
	streaming bool
}

// Header returns the outer writer's: handlers see, and may remove, what middleware further
// out has set.
func (c *capture) Header() http.Header { return c.w.Header() }

// SetReadDeadline implements what [http.ResponseController] calls, as do the next two methods: they
// send nothing.
func (c *capture) SetReadDeadline(at time.Time) error {
	return http.NewResponseController(c.w).SetReadDeadline(at)
}

// SetWriteDeadline is for a handler that takes longer than the server's WriteTimeout.
func (c *capture) SetWriteDeadline(at time.Time) error {
	return http.NewResponseController(c.w).SetWriteDeadline(at)
}

// EnableFullDuplex has no effect on a request whose body is read already.
func (c *capture) EnableFullDuplex() error {
	return http.NewResponseController(c.w).EnableFullDuplex()
}

// WriteHeader takes the first final status. Informational ones (1xx) are not passed on, and
// further calls have no effect.
func (c *capture) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code)) // as net/http does, while the key can still be released
	}
	if c.code != 0 || code < 200 {
		return
	}
	c.code, c.header = code, c.w.Header().Clone()
	c.kept = c.keep.pick(c.header)
	maps.DeleteFunc(c.kept, func(name string, values []string) bool {
		before, set := c.outer[name]
		return set && slices.Equal(before, values)
	})
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.code == http.StatusNoContent || c.code == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !c.streaming && !c.fits(len(p)) {
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

// fits reports whether the answer with more bytes of body stays within the limit.
func (c *capture) fits(more int) bool { return headers.Size(c.kept)+len(c.body)+more <= c.limit }

// response is what is kept of the answer.
func (c *capture) response() Response {
	if c.fits(0) {
		return Response{StatusCode: c.code, Header: c.kept, Body: c.body}
	}
	return c.withoutBody()
}

// withoutBody is what is kept of an answer that is too large.
func (c *capture) withoutBody() Response {
	location := onlyLocation.pick(c.kept)
	if headers.Size(location) > c.limit {
		location = nil
	}
	return Response{StatusCode: c.code, Header: location, BodyOmitted: true}
}

// isWhole reports whether the body that is held has the length that the handler declared (RFC 9110,
// section 8.6). A proxy declares the length of its upstream's answer, which may break off.
func (c *capture) isWhole(method string) bool {
	declared := c.header.Get("Content-Length")
	length, err := strconv.ParseInt(declared, 10, 64)
	return c.streaming || declared == "" || err != nil || !c.mayHaveBody(method) || length == int64(len(c.body))
}

func (c *capture) mayHaveBody(method string) bool {
	return method != http.MethodHead && c.code != http.StatusNoContent && c.code != http.StatusNotModified
}

// send writes what was held back. Headers that were set after WriteHeader are dropped, as
// net/http does.
func (c *capture) send() error {
	outer := c.w.Header()
	clear(outer)
	maps.Copy(outer, c.header)
	if c.replayed() {
		outer.Set(c.dialect.replayName(), "true")
	}
	if _, encodes := c.outer["Content-Encoding"]; !encodes && !c.streaming {
		declareLength(outer, c.body)
	}
	c.w.WriteHeader(c.code)
	if len(c.body) == 0 {
		return nil
	}
	_, err := c.w.Write(c.body)
	c.body = nil
	return err
}

// declareLength says how long a body is that is held whole. Without that, a peer that speaks
// HTTP/1.0, such as nginx by default, takes the end of a broken connection for the end of the body.
// It is not for a body that middleware further out encodes.
func declareLength(header http.Header, body []byte) {
	if len(body) > 0 {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}
