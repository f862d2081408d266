package recipes

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// Echo makes Echo's handlers idempotent: e.Use(Echo(keys)). Echo's error handler writes the answer
// to an error while the middleware still holds the response back. If nothing is written, middleware
// further out may answer, and a retry gets 409 idempotency_response_not_kept. So a handler whose
// answer is empty must call c.NoContent.
func Echo(keys *idempotency.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer, request := c.Response(), c.Request()
			around := idempotency.ClaimFrom(request.Context())
			var passedOn error
			held := &echoWriter{ResponseWriter: outer}
			keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				claim := idempotency.ClaimFrom(r.Context())
				if claim == around { // the request has no key, or its route no policy
					passedOn = next(c)
					return
				}
				defer func() { c.SetResponse(outer); c.SetRequest(request) }()
				inner := innerResponse(c, w)
				c.SetRequest(r)
				c.SetResponse(inner)
				err := next(c)
				if err != nil {
					c.Echo().HTTPErrorHandler(c, err)
				}
				if !inner.Committed && r.Context().Err() == nil { // otherwise the library answers 503
					if err != nil {
						claim.Release()
					} else {
						claim.Omit() // the handler has run
					}
					held.unanswered = true
					w.WriteHeader(http.StatusOK)
				}
			})).ServeHTTP(held, request)
			return passedOn
		}
	}
}

// innerResponse is one on the writer that holds the response back, in the state of the outer one.
func innerResponse(c *echo.Context, w http.ResponseWriter) *echo.Response {
	inner := echo.NewResponse(w, c.Logger())
	if outer, err := echo.UnwrapResponse(c.Response()); err == nil {
		inner.Status, inner.Size, inner.Committed = outer.Status, outer.Size, outer.Committed
	}
	if inner.Committed {
		w.WriteHeader(inner.Status)
	}
	return inner
}

// echoWriter leaves the outer response uncommitted where the handler wrote nothing.
type echoWriter struct {
	http.ResponseWriter
	unanswered bool
}

// WriteHeader implements [http.ResponseWriter].
func (e *echoWriter) WriteHeader(code int) {
	if !e.unanswered {
		e.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap is for [http.ResponseController].
func (e *echoWriter) Unwrap() http.ResponseWriter { return e.ResponseWriter }
