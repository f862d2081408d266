package pages

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// answer is what a page answers.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks for a page as a browser does, or with other header fields.
func get(t *testing.T, path string, fields ...string) answer {
	t.Helper()
	router := chi.NewRouter()
	Mount(router, Options{NotFound: http.NotFound})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for pair := range slices.Chunk(fields, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	recorder := httptest.NewRecorder()
	router.ServeHTTP(recorder, request)
	body, err := io.ReadAll(recorder.Body)
	require.NoError(t, err)
	return answer{recorder.Code, recorder.Header(), string(body)}
}

func TestFront_LeadsABrowserToTheDocs(t *testing.T) {
	t.Parallel()
	got := get(t, "/")
	require.Equal(t, http.StatusSeeOther, got.status)
	require.Equal(t, "/docs", got.header.Get("Location"))
	require.Equal(t, "Accept", got.header.Get("Vary"))
}

func TestFront_TellsAProgramWhatThereIs(t *testing.T) {
	t.Parallel()
	got := get(t, "/", "Accept", "*/*")
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"api":"/v1","description":"/openapi.yaml","docs":"/docs","problems":"/problems"}`, got.body)
}

func TestDescription_IsTheFile(t *testing.T) {
	t.Parallel()
	got := get(t, "/openapi.yaml")
	require.Equal(t, "application/yaml", got.header.Get("Content-Type"))
	require.Equal(t, string(api.Description), got.body)
}

func TestPages_KeepOtherSitesOut(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/docs", "/docs/docs.js", "/docs/swagger-ui.css", "/openapi.yaml", "/problems", "/problems/out_of_stock"} {
		got := get(t, path)
		require.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, got.status, path)
		require.Contains(t, got.header.Get("Content-Security-Policy"), "default-src 'none'", path)
		require.Contains(t, got.header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"), path)
	}
}

func TestDocs_AreServedCompressed(t *testing.T) {
	t.Parallel()
	got := get(t, "/docs/swagger-ui-bundle.js", "Accept-Encoding", "gzip")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "gzip", got.header.Get("Content-Encoding"))
	require.Contains(t, got.header.Get("Content-Type"), "javascript")
}

func TestDocs_HaveNoOtherFiles(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/docs/", "/docs/oauth2-redirect.html", "/docs/embed.go", "/docs/../pages.go"} {
		require.Equal(t, http.StatusNotFound, get(t, path).status, path)
	}
}

func TestProblem_HasCauseActionAndExample(t *testing.T) {
	t.Parallel()
	for code, e := range byCode {
		got := get(t, "/problems/"+code)
		require.Equal(t, http.StatusOK, got.status, code)
		for _, text := range []string{"<h1>" + code + "</h1>", "Cause", "What to do", "HTTP/1.1 ", "/problems/" + code} {
			require.Contains(t, got.body, text, code)
		}
		require.NotEmpty(t, e.Title(), code)
		require.NotEmpty(t, e.Detail, code)
		require.NotEmpty(t, e.When, code)
		require.NotEmpty(t, e.Then, code)
		require.Contains(t, get(t, "/problems").body, `href="/problems/`+code+`"`)
	}
}

func TestProblem_WithoutAPageIsNotFound(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.StatusNotFound, get(t, "/problems/no_such_problem").status)
}
