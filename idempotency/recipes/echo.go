package recipes

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// Echo makes Echo's handlers idempotent: e.Use(Echo(keys)). Echo's error handler writes the
// answer to an error while the middleware still holds the response back.
func Echo(keys *idempotency.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer := c.Response()
			defer c.SetResponse(outer)
			keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.SetRequest(r)
				c.SetResponse(echo.NewResponse(w, c.Logger()))
				if err := next(c); err != nil {
					c.Echo().HTTPErrorHandler(c, err)
				}
			})).ServeHTTP(outer, c.Request())
			return nil
		}
	}
}
