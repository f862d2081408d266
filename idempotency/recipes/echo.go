package recipes

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// Echo makes Echo's handlers idempotent: e.Use(Echo(keys)). Echo's error handler writes the answer
// to an error while the middleware still holds the response back. If it writes none, nothing is
// kept.
func Echo(keys *idempotency.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer, request := c.Response(), c.Request()
			around := idempotency.ClaimFrom(request.Context())
			var passedOn error
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
				if err == nil {
					return
				}
				c.Echo().HTTPErrorHandler(c, err)
				if !inner.Committed {
					claim.Release()
				}
			})).ServeHTTP(outer, request)
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
