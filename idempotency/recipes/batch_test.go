package recipes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestChi_PartsOfABatchHaveRoutesOfTheirOwn: without the fresh context for chi, parts at the same
// time share one place in the routes, and act on the objects of others.
func TestChi_PartsOfABatchHaveRoutesOfTheirOwn(t *testing.T) {
	t.Parallel()
	const parts = 20
	root, api := chi.NewRouter(), chi.NewRouter()
	answers := make([]*httptest.ResponseRecorder, parts)
	api.Post("/items/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(chi.URLParam(r, "id")))
	})
	api.Post("/batch", func(_ http.ResponseWriter, r *http.Request) {
		var running sync.WaitGroup
		for i := range parts {
			running.Go(func() {
				ctx := context.WithValue(r.Context(), chi.RouteCtxKey, nil)
				id := strconv.Itoa(i)
				part := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/items/"+id, strings.NewReader("{}"))
				part.Header.Set(idempotency.HeaderKey, "part "+id)
				answers[i] = httptest.NewRecorder()
				root.ServeHTTP(answers[i], part)
			})
		}
		running.Wait()
	})
	root.Use(newKeys().Handler)
	root.Mount("/api", api)
	for _, replayed := range []string{"", "true"} { // another batch of the same parts
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/batch", strings.NewReader("{}"))
		r.Header.Set(idempotency.HeaderKey, "batch"+replayed)
		root.ServeHTTP(httptest.NewRecorder(), r)
		for i, answer := range answers {
			require.Equal(t, http.StatusCreated, answer.Code)
			require.Equal(t, strconv.Itoa(i), answer.Body.String())
			require.Equal(t, replayed, answer.Header().Get(idempotency.HeaderReplay))
		}
	}
}
