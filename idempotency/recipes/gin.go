package recipes

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/oncepay/oncepay/idempotency"
)

// Gin makes Gin's handlers idempotent: router.Use(Gin(keys)). Middleware that turns c.Errors, or
// results, into answers belongs inside: router.Use(Gin(keys), answerErrors). The answer of one
// further out is not kept, nor is the router's for an unknown route. So a handler whose answer is
// empty must call c.Status: after one that writes nothing, a retry gets 409
// idempotency_response_not_kept.
func Gin(keys *idempotency.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer, request := c.Writer, c.Request
		around := idempotency.ClaimFrom(request.Context())
		defer func() { c.Writer, c.Request = outer, request }()
		keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			claim := idempotency.ClaimFrom(r.Context())
			if claim == around { // the request has no key, or its route no policy
				c.Next()
				return
			}
			inner := &ginWriter{ResponseWriter: outer, w: w, status: outer.Status(), size: outer.Size()}
			if inner.Written() {
				w.WriteHeader(inner.status)
			}
			c.Request, c.Writer = r, inner
			before := len(c.Errors)
			c.Next()
			unanswered := !inner.Written() && !inner.chosen
			if unanswered && r.Context().Err() != nil {
				return // the library answers 503
			}
			switch { // middleware further out, or the router, will answer
			case unanswered && c.FullPath() == "", !inner.Written() && len(c.Errors) > before && (!inner.chosen || inner.status >= 400):
				claim.Release()
			case unanswered:
				claim.Omit() // the handler has run
			}
			inner.WriteHeaderNow()
		})).ServeHTTP(outer, request)
		c.Abort() // c.Next has run, or the answer came from the store
	}
}

// ginWriter is a [gin.ResponseWriter] on the writer that holds the response back.
type ginWriter struct {
	gin.ResponseWriter // the outer one, for CloseNotify
	w                  http.ResponseWriter
	status, size       int  // size is -1 until the header is written
	chosen             bool // the handler has set the status
}

// Header implements [gin.ResponseWriter]; so do the methods below.
func (g *ginWriter) Header() http.Header { return g.w.Header() }

// Status returns the status code so far.
func (g *ginWriter) Status() int { return g.status }

// Size returns the length of the body so far in bytes, or -1.
func (g *ginWriter) Size() int { return g.size }

// Written reports whether the header is written.
func (g *ginWriter) Written() bool { return g.size >= 0 }

// WriteHeader sets the status code. The header is written later.
func (g *ginWriter) WriteHeader(code int) {
	if code > 0 && !g.Written() {
		g.status, g.chosen = code, true
	}
}

// WriteHeaderNow writes the header, once.
func (g *ginWriter) WriteHeaderNow() {
	if !g.Written() {
		g.size = 0
		g.w.WriteHeader(g.status)
	}
}

// Write writes the header and a part of the body.
func (g *ginWriter) Write(p []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.w.Write(p)
	g.size += n
	return n, err
}

// WriteString is Write.
func (g *ginWriter) WriteString(s string) (int, error) { return g.Write([]byte(s)) }

// Flush only writes the header: nothing is sent before the answer is kept.
func (g *ginWriter) Flush() { g.WriteHeaderNow() }

// Hijack is not possible.
func (g *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// Pusher returns nil: HTTP/2 push is not possible.
func (g *ginWriter) Pusher() http.Pusher { return nil }

// Unwrap returns the writer that holds the response back.
func (g *ginWriter) Unwrap() http.ResponseWriter { return g.w }
