// Package pages is what a replica shows in a browser: the API's description in a viewer, and a page
// for each problem. Everything is embedded: no page asks another site for anything.
package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	swagger "github.com/swaggest/swgui/v5/static"

	"github.com/oncepay/oncepay/api"
)

// Options say what the pages offer.
type Options struct {
	// DemoKey is the API key that the viewer sends its requests with. Without one the viewer
	// describes the API and sends nothing.
	DemoKey string
	// NotFound answers for a page that does not exist.
	NotFound http.HandlerFunc
}

// Paths that others point to. The type of a problem is the path of its page (RFC 9457, section
// 3.1.1).
const (
	Docs        = "/docs"
	Description = "/openapi.yaml"
	Problems    = "/problems/"
)

// contentPolicy lets a page load what this replica serves, and nothing else. The viewer's
// stylesheet contains images, as data: URLs.
const contentPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed templates
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*.html"))

// Mount adds the pages to a router. Anybody may read them.
func Mount(r chi.Router, options Options) {
	r = r.With(secure)
	r.Get("/", front)
	r.Get(Description, description)
	r.Get(Docs, render("docs.html", options))
	r.Get("/problems", render("problems.html", groups))
	r.Get(Problems+"{code}", explain(options.NotFound))
	mountFiles(r, http.FileServerFS(staticFiles), "/static/", "docs.js", "pages.css")
	mountFiles(r, http.FileServerFS(swagger.FS), "/", "favicon-32x32.png")
	r.Get(Docs+"/swagger-ui.css", compressed("swagger-ui.css.gz", "text/css; charset=utf-8"))
	r.Get(Docs+"/swagger-ui-bundle.js", compressed("swagger-ui-bundle.js.gz", "text/javascript; charset=utf-8"))
}

// compressed serves a file of the viewer as it is embedded, and to every client: browsers take it.
// A reader that decompresses or copies it would be memory for as long as a client does not read.
func compressed(name, media string) http.HandlerFunc {
	content, err := swagger.FS.ReadFile(name)
	if err != nil {
		panic(err) // the module has other files
	}
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256(content))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", media)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // the client may be gone
	}
}

// mountFiles serves files of a folder below Docs.
func mountFiles(r chi.Router, files http.Handler, folder string, names ...string) {
	for _, name := range names {
		r.Get(Docs+"/"+name, func(w http.ResponseWriter, request *http.Request) {
			request = request.Clone(request.Context())
			request.URL.Path = folder + name
			files.ServeHTTP(w, request)
		})
	}
}

// secure keeps other sites out of the pages, and the pages off other sites.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache") // a new version shows at once
		next.ServeHTTP(w, r)
	})
}

// front leads a browser to the documentation, and tells a program what there is.
func front(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, Docs, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{ // the client may be gone
		"api": "/v1", "description": Description, "docs": Docs, "problems": strings.TrimSuffix(Problems, "/"),
	})
}

func description(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml") // RFC 9512
	_, _ = w.Write(api.Description)                    // the client may be gone
}

// render answers with a template and the same data each time.
func render(name string, data any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = templates.ExecuteTemplate(w, name, data) // the client may be gone
	}
}
