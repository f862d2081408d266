package recipes_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"
	"github.com/rs/cors"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

const shopAnswer = `{"id":1}`

// browserShops are an API for scripts of two origins: CORS and compression are outside of the keys.
func browserShops() map[string]http.Handler {
	newKeys := func() func(http.Handler) http.Handler {
		policy := idempotency.Policy{Required: true}
		return idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope()).Handler
	}
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, shopAnswer)
	})
	origins := []string{"https://a.example", "https://b.example"}
	shared := cors.New(cors.Options{
		AllowedOrigins: origins, AllowedHeaders: []string{idempotency.HeaderKey}, ExposedHeaders: []string{idempotency.HeaderReplay},
	})
	router := chi.NewRouter()
	router.Use(middleware.Recoverer, shared.Handler, middleware.Compress(5), newKeys())
	router.Method(http.MethodPost, "/orders", app)
	gorilla := handlers.CORS(handlers.AllowedOrigins(origins), handlers.AllowedHeaders([]string{idempotency.HeaderKey}),
		handlers.ExposedHeaders([]string{idempotency.HeaderReplay}))
	return map[string]http.Handler{
		"chi":               router,
		"gorilla/handlers":  gorilla(handlers.CompressHandler(newKeys()(app))),
		"rs/cors alone":     shared.Handler(newKeys()(app)),
		"gorilla, swapped":  handlers.CompressHandler(gorilla(newKeys()(app))),
		"preflights inside": newKeys()(shared.Handler(app)),
	}
}

func TestOrder_OfMiddlewareThatOthersWrote(t *testing.T) {
	t.Parallel()
	for name, handler := range browserShops() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			send := func(method, origin string, header ...string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/orders", http.NoBody)
				require.NoError(t, err)
				r.Header.Set("Origin", origin)
				for i := 0; i < len(header); i += 2 {
					r.Header.Set(header[i], header[i+1])
				}
				response, err := server.Client().Do(r)
				require.NoError(t, err)
				t.Cleanup(func() { _ = response.Body.Close() })
				return response
			}
			preflight := send(http.MethodOptions, "https://a.example",
				"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "idempotency-key")
			require.Less(t, preflight.StatusCode, 300)
			require.Equal(t, "https://a.example", preflight.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "idempotency-key", strings.ToLower(preflight.Header.Get("Access-Control-Allow-Headers")))

			for i, encoding := range []string{"gzip", "identity", "gzip"} {
				origin := []string{"https://a.example", "https://b.example"}[i%2]
				if name == "preflights inside" {
					origin = "https://a.example" // a handler's own CORS header is kept
				}
				answer := send(http.MethodPost, origin, idempotency.HeaderKey, "key", "Accept-Encoding", encoding)
				require.Equal(t, http.StatusCreated, answer.StatusCode)
				require.Equal(t, i > 0, answer.Header.Get(idempotency.HeaderReplay) == "true")
				require.Equal(t, []string{origin}, answer.Header["Access-Control-Allow-Origin"])
				require.Equal(t, []string{idempotency.HeaderReplay}, answer.Header["Access-Control-Expose-Headers"])
				body := io.Reader(answer.Body)
				if answer.Header.Get("Content-Encoding") != "" {
					require.Equal(t, "gzip", encoding)
					var err error
					body, err = gzip.NewReader(body)
					require.NoError(t, err)
				}
				text, err := io.ReadAll(body)
				require.NoError(t, err)
				require.Equal(t, shopAnswer, string(text))
			}
		})
	}
}
