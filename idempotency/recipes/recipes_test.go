package recipes_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/recipes"
)

// shop is one of the frameworks with the same routes. run counts the handlers that ran.
type shop struct {
	handler http.Handler
	run     int
}

func newKeys() *idempotency.Middleware { return newKeysOn(memstore.New()) }

func newKeysOn(store idempotency.Store) *idempotency.Middleware {
	return idempotency.New(store, idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope(),
		idempotency.WithLogger(slog.New(slog.DiscardHandler)))
}

var errBroken = errors.New("broken")

func echoShop() *shop {
	s, e := &shop{}, echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(recipes.Echo(newKeys()))
	route := func(path string, handle echo.HandlerFunc) {
		e.POST(path, func(c *echo.Context) error { s.run++; return handle(c) })
	}
	route("/created", func(c *echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Location", "/1")
		return c.String(http.StatusCreated, "made of "+string(body))
	})
	route("/declined", func(*echo.Context) error { return echo.NewHTTPError(http.StatusPaymentRequired, "declined") })
	route("/broken", func(*echo.Context) error { return errBroken })
	route("/empty", func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) })
	s.handler = e
	return s
}

// ginShop has its errors answered inside of the middleware, or outside.
func ginShop(inside bool) *shop {
	gin.SetMode(gin.ReleaseMode)
	s, router := &shop{}, gin.New()
	answerErrors := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() {
			c.JSON(http.StatusInternalServerError, gin.H{"error": "sorry"})
		}
	}
	if inside {
		router.Use(recipes.Gin(newKeys()), answerErrors)
	} else {
		router.Use(answerErrors, recipes.Gin(newKeys()))
	}
	route := func(path string, handle gin.HandlerFunc) {
		router.POST(path, func(c *gin.Context) { s.run++; handle(c) })
	}
	route("/created", func(c *gin.Context) {
		body, err := c.GetRawData()
		if err != nil {
			_ = c.AbortWithError(http.StatusBadRequest, err)
			return
		}
		c.Header("Location", "/1")
		c.String(http.StatusCreated, "made of "+string(body))
	})
	route("/declined", func(c *gin.Context) { c.AbortWithStatusJSON(http.StatusPaymentRequired, gin.H{"message": "declined"}) })
	route("/broken", func(c *gin.Context) { _ = c.Error(errBroken) })
	route("/empty", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	s.handler = router
	return s
}

func (s *shop) post(t *testing.T, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set(idempotency.HeaderKey, path)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func TestRecipe_ReplaysTheFrameworksAnswers(t *testing.T) {
	t.Parallel()
	for framework, makeShop := range map[string]func() *shop{
		"echo":                         echoShop,
		"gin, errors answered inside":  func() *shop { return ginShop(true) },
		"gin, errors answered outside": func() *shop { return ginShop(false) },
	} {
		for path, tt := range map[string]struct {
			code int
			body string // a part of it
			runs int
		}{
			"/created":  {http.StatusCreated, "made of wool", 1},
			"/declined": {http.StatusPaymentRequired, "declined", 1},
			"/broken":   {http.StatusInternalServerError, "rror", 3}, // never kept
			"/empty":    {http.StatusNoContent, "", 1},
		} {
			t.Run(framework+path, func(t *testing.T) {
				t.Parallel()
				s := makeShop()
				first := s.post(t, path, "wool")
				require.Equal(t, tt.code, first.Code)
				require.Contains(t, first.Body.String(), tt.body)
				for range 2 {
					again := s.post(t, path, "wool")
					require.Equal(t, first.Code, again.Code)
					require.Equal(t, first.Body.String(), again.Body.String())
					require.Equal(t, first.Header().Get("Location"), again.Header().Get("Location"))
					require.Equal(t, first.Header().Get("Content-Type"), again.Header().Get("Content-Type"))
					require.Equal(t, tt.runs == 1, again.Header().Get(idempotency.HeaderReplay) == "true")
				}
				require.Equal(t, tt.runs, s.run)
			})
		}
	}
}

// unknownRoutes is a server that knows GET /known, with the recipe or without it.
func unknownRoutes(framework string, with, ownPage bool) http.Handler {
	keys := idempotency.New(memstore.New(), func(r *http.Request) *idempotency.Policy {
		if r.Method != http.MethodPost {
			return nil
		}
		return &idempotency.Policy{}
	}, idempotency.WithSharedScope(), idempotency.WithLogger(slog.New(slog.DiscardHandler)))
	if framework == "echo" {
		e := echo.New()
		e.Logger = slog.New(slog.DiscardHandler)
		if with {
			e.Use(recipes.Echo(keys))
		}
		e.GET("/known", func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) })
		if ownPage {
			e.RouteNotFound("/*", func(c *echo.Context) error { return c.String(http.StatusNotFound, "nothing here") })
		}
		return e
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	if with {
		router.Use(recipes.Gin(keys))
	}
	router.GET("/known", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	if ownPage {
		router.NoRoute(func(c *gin.Context) { c.String(http.StatusNotFound, "nothing here") })
	}
	return router
}

// TestRecipe_LeavesUnknownRoutesToTheRouter: the answer is the one without the recipe, and is not
// kept.
func TestRecipe_LeavesUnknownRoutesToTheRouter(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{"echo", "gin"} {
		for _, ownPage := range []bool{false, true} {
			plain, with := unknownRoutes(framework, false, ownPage), unknownRoutes(framework, true, ownPage)
			for _, tt := range [][3]string{
				{"POST", "/unknown", "key"}, {"POST", "/unknown", "key"}, {"POST", "/unknown", ""}, {"GET", "/unknown", ""},
				{"GET", "/unknown", "key"}, {"POST", "/known", "other"}, {"POST", "/known", "other"}, {"GET", "/known", ""},
			} {
				r := httptest.NewRequestWithContext(t.Context(), tt[0], tt[1], strings.NewReader("{}"))
				if tt[2] != "" {
					r.Header.Set(idempotency.HeaderKey, tt[2])
				}
				want, got := httptest.NewRecorder(), httptest.NewRecorder()
				plain.ServeHTTP(want, r.Clone(t.Context()))
				with.ServeHTTP(got, r)
				require.Equal(t, want.Code, got.Code, "%s: %v", framework, tt)
				require.Equal(t, want.Body.String(), got.Body.String(), "%s: %v", framework, tt)
				want.Header().Del("Content-Length")
				got.Header().Del("Content-Length")
				require.Equal(t, want.Header(), got.Header(), "%s: %v", framework, tt)
			}
		}
	}
}

// TestRecipe_BeginsInTheStateOfTheOuterWriter: middleware further out has chosen the status of an
// answer, or has begun it. What it sees afterwards is its own request.
func TestRecipe_BeginsInTheStateOfTheOuterWriter(t *testing.T) {
	t.Parallel()
	store, e := memstore.New(), echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			_ = c.String(http.StatusAccepted, "begun, ")
			defer func() { require.NoError(t, c.Request().Context().Err()) }()
			return next(c)
		}
	}, recipes.Echo(newKeysOn(store)))
	e.POST("/", func(c *echo.Context) error {
		response, err := echo.UnwrapResponse(c.Response())
		require.NoError(t, err)
		require.True(t, response.Committed)
		require.Equal(t, http.StatusAccepted, response.Status)
		_, err = io.WriteString(c.Response(), "done")
		return err
	})
	router := gin.New()
	router.Use(func(c *gin.Context) {
		if c.Status(http.StatusAccepted); c.Query("begun") != "" {
			c.String(http.StatusAccepted, "begun, ")
		}
		c.Next()
		require.NoError(t, c.Request.Context().Err())
	}, recipes.Gin(newKeysOn(store)))
	router.POST("/", func(c *gin.Context) {
		require.Equal(t, http.StatusAccepted, c.Writer.Status())
		require.Equal(t, c.Query("begun") != "", c.Writer.Written())
		_, _ = c.Writer.WriteString("done")
	})
	for name, s := range map[string]*shop{"/?begun=1": {handler: e}, "/?begun=2": {handler: router}, "/": {handler: router}} {
		first := s.post(t, name, "")
		require.Equal(t, http.StatusAccepted, first.Code, name)
		require.Contains(t, first.Body.String(), "done", name)
		record, err := store.Lookup(t.Context(), "", name)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, record.Response.StatusCode, name)
		again := s.post(t, name, "")
		require.Equal(t, http.StatusAccepted, again.Code, name)
		require.Contains(t, again.Body.String(), "done", name)
	}
}

// TestRecipe_PassesOnWhatHasNoKey: the framework's own writer, and the error.
func TestRecipe_PassesOnWhatHasNoKey(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	var seen error
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			seen = next(c)
			return seen
		}
	}, recipes.Echo(newKeys()))
	e.POST("/", func(*echo.Context) error { return errBroken })
	router := gin.New()
	router.Use(recipes.Gin(newKeys()))
	router.POST("/", func(c *gin.Context) { c.String(http.StatusOK, "at once"); c.Writer.Flush() })
	for _, handler := range []http.Handler{e, router} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		require.Equal(t, handler == http.Handler(router), w.Flushed)
	}
	require.ErrorIs(t, seen, errBroken)
}

// TestAdapter_OfTheFrameworkKeepsAnEmptyAnswer is the reason for these recipes.
func TestAdapter_OfTheFrameworkKeepsAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.Use(echo.WrapMiddleware(newKeys().Handler))
	e.POST("/broken", func(*echo.Context) error { return errBroken })
	s := &shop{handler: e}
	s.post(t, "/broken", "")
	again := s.post(t, "/broken", "")
	require.Equal(t, http.StatusOK, again.Code)
	require.Empty(t, again.Body.String())
}
