package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// paintInterval is how soon a page shows what has changed.
const paintInterval = 150 * time.Millisecond

//go:embed page
var files embed.FS

var (
	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"short": short, "brief": brief, "shorten": shorten, "money": money, "title": title, "join": strings.Join,
		"verb":  func(command string) string { return strings.Fields(command)[0] },
		"class": func(state string) string { return strings.ReplaceAll(state, " ", "-") },
	}).ParseFS(files, "page/*.html"))
	static = http.StripPrefix("/static/", http.FileServerFS(files))
)

// short is the beginning of a hash or an ID.
func short(s string) string { return s[:min(len(s), 10)] }

func money(minor int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", minor/100, minor%100, currency)
}

// render makes the page, or a part of it, of what is known now.
func (s *Server) render(name string) string {
	var html strings.Builder
	s.change(func(now *state) {
		err := templates.ExecuteTemplate(&html, name, map[string]any{
			"Now": now, "Layouts": layouts, "Arrows": arrows, "Services": services, "Board": board, "Demos": demos,
			"API": s.shop.at.URL(),
		})
		if err != nil {
			slog.Error("page not rendered", "cause", err)
		}
	})
	return html.String()
}

func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, s.render("page.html")) // the browser may be gone
}

// serveEvents sends a page what it shows, whenever that has changed (HTML Living Standard,
// "Server-sent events").
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	s.background.Go(func() { s.keepLooking(r.Context()) }) // nobody looks if there is no page
	w.Header().Set("Content-Type", "text/event-stream")
	for shown := ""; ; {
		if now := s.render("main.html"); now != shown {
			shown = now
			data, _ := json.Marshal(shown) // on one line, as an event needs it
			if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
				return // the page is gone
			}
		}
		if http.NewResponseController(w).Flush() != nil || wait.Pause(r.Context(), paintInterval) != nil {
			return
		}
	}
}

// guard refuses what a page from elsewhere sends: another Origin, or, after DNS rebinding, another
// Host. A program sends no Origin. The headers keep the page from being framed, and from loading
// anything that is not ours.
func guard(addr string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr)
	own := map[string]bool{addr: true, net.JoinHostPort("localhost", port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !own[r.Host] || (origin != "" && origin != "http://"+r.Host) {
			http.Error(w, "The console answers its own page only, at http://"+addr, http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
