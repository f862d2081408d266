package recipes_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/recipes"
)

// renderedOutside are the two frameworks with middleware outside of the recipe that writes the
// results of handlers, and with the routes /rendered, /late (which writes nothing) and /empty.
func renderedOutside(keys *idempotency.Middleware) map[string]*shop {
	gin.SetMode(gin.ReleaseMode)
	ginShop, router := &shop{}, gin.New()
	router.Use(func(c *gin.Context) {
		c.Next()
		if result, ok := c.Get("result"); ok {
			c.JSON(http.StatusCreated, result)
		}
	}, recipes.Gin(keys))
	router.POST("/rendered", func(c *gin.Context) { ginShop.run++; c.Set("result", "made") })
	router.POST("/late", func(c *gin.Context) { ginShop.run++; <-c.Request.Context().Done() })
	router.POST("/empty", func(c *gin.Context) { ginShop.run++; c.Status(http.StatusOK) })
	router.POST("/warned", func(c *gin.Context) {
		ginShop.run++
		_ = c.Error(http.ErrNotSupported)
		c.Status(http.StatusNoContent)
	})
	ginShop.handler = router

	echoShop, e := &shop{}, echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			err := next(c)
			if result := c.Get("result"); err == nil && result != nil {
				return c.JSON(http.StatusCreated, result)
			}
			return err
		}
	}, recipes.Echo(keys))
	e.POST("/rendered", func(c *echo.Context) error { echoShop.run++; c.Set("result", "made"); return nil })
	e.POST("/late", func(c *echo.Context) error { echoShop.run++; <-c.Request().Context().Done(); return nil })
	e.POST("/empty", func(c *echo.Context) error { echoShop.run++; return c.NoContent(http.StatusOK) })
	echoShop.handler = e
	return map[string]*shop{"gin": ginShop, "echo": echoShop}
}

func TestRecipe_LeavesTheAnswerToMiddlewareOutside(t *testing.T) {
	t.Parallel()
	for name := range renderedOutside(newKeys()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := renderedOutside(newKeys())[name]
			answer := s.post(t, "/rendered", "")
			require.Equal(t, http.StatusCreated, answer.Code)
			require.JSONEq(t, `"made"`, answer.Body.String())
			for range 2 {
				retried := s.post(t, "/rendered", "")
				require.Equal(t, http.StatusConflict, retried.Code)
				require.Contains(t, retried.Body.String(), idempotency.CodeResponseNotKept)
			}
			require.Equal(t, 1, s.run, "the handler may have had an effect")
			s.run = 0
			require.Equal(t, http.StatusOK, s.post(t, "/empty", "").Code)
			again := s.post(t, "/empty", "")
			require.Equal(t, http.StatusOK, again.Code)
			require.Equal(t, "true", again.Header().Get(idempotency.HeaderReplay), "a status is an answer")
			require.Equal(t, 1, s.run)
		})
	}
}

// TestGin_KeepsAStatusBesideAnError that is logged alone.
func TestGin_KeepsAStatusBesideAnError(t *testing.T) {
	t.Parallel()
	s := renderedOutside(newKeys())["gin"]
	for range 2 {
		require.Equal(t, http.StatusNoContent, s.post(t, "/warned", "").Code)
	}
	require.Equal(t, 1, s.run)
}

// TestRecipe_KeepsNothingOfAHandlerThatIsLate: as with net/http, the library answers 503 for it.
func TestRecipe_KeepsNothingOfAHandlerThatIsLate(t *testing.T) {
	t.Parallel()
	newKeys := func() *idempotency.Middleware {
		return idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{Deadline: time.Millisecond}),
			idempotency.WithSharedScope(), idempotency.WithLogger(slog.New(slog.DiscardHandler)))
	}
	for name := range renderedOutside(newKeys()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := renderedOutside(newKeys())[name]
			for i := range 2 {
				answer := s.post(t, "/late", "")
				require.Equal(t, http.StatusServiceUnavailable, answer.Code)
				require.Contains(t, answer.Body.String(), idempotency.CodeRequestTimeout)
				require.Equal(t, i+1, s.run)
			}
		})
	}
}
