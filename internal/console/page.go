package console

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

// paintInterval is how soon a page shows what has changed.
const paintInterval = 150 * time.Millisecond

//go:embed page
var files embed.FS

var (
	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"n": func(x float64) string { return fmt.Sprintf("%.1f", x) }, "short": short, "money": money, "join": strings.Join,
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

// render writes a template of the page as it is now.
func (s *Server) render(w io.Writer, name string) error {
	now := s.seen.now()
	attempts := slices.Clone(s.journal.now())
	slices.Reverse(attempts)
	return templates.ExecuteTemplate(w, name, map[string]any{
		"Board": board, "Shopper": shopperButtons, "Tokens": tokens, "Demos": demos, "API": s.cfg.Doors[stack.Nginx],
		"Health": now.health, "Picture": s.pictureOf(now.health), "Story": s.story.now(), "Attempts": attempts,
		"Mails": now.mails, "View": now.view,
	})
}

func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := s.render(w, "page.html"); err != nil {
		s.cfg.Log.Warn("page not sent", "cause", err)
	}
}

// watched reports whether a page is open.
func (s *Server) watched() bool { return s.pages.Load() > 0 }

// serveEvents sends a page what it shows, whenever that has changed (HTML Living Standard,
// "Server-sent events").
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	s.pages.Add(1)
	defer s.pages.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	for shown := ""; ; {
		var now strings.Builder
		if err := s.render(&now, "main.html"); err != nil {
			s.cfg.Log.Error("page not rendered", "cause", err)
			return
		}
		if now.String() != shown {
			shown = now.String()
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

// Wrong says in a few words what is not as it should be.
func (h health) Wrong() (wrong []string) {
	for _, name := range services {
		if status, known := h.Services[name]; known && status.State != "ready" {
			wrong = append(wrong, titles[name]+" "+status.State)
		}
	}
	for _, c := range arrows {
		for _, fault := range h.Faults[c] {
			wrong = append(wrong, titles[c.from]+" → "+titles[c.to]+": "+fault)
		}
	}
	return wrong
}
