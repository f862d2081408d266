package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
)

//go:embed page
var files embed.FS

var (
	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"n": func(x float64) string { return fmt.Sprintf("%.1f", x) }, "short": short, "money": money, "join": strings.Join, "verb": verb,
	}).ParseFS(files, "page/*.html"))
	static = http.StripPrefix("/static/", http.FileServerFS(files))
)

// short is the beginning of a hash or an ID.
func short(s string) string { return s[:min(len(s), 10)] }

// verb is the first word of a command, for its button.
func verb(command string) string { return strings.Fields(command)[0] }

func money(minor int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", minor/100, minor%100, currency)
}

// servePage answers with what does not change; the stream of events brings the rest.
func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	err := templates.ExecuteTemplate(w, "page.html", map[string]any{
		"Board": board, "Shopper": shopperButtons, "Tokens": tokens, "Demos": demos, "API": s.cfg.Doors[stack.Nginx],
	})
	if err != nil {
		s.cfg.Log.Warn("page not sent", "cause", err)
	}
}

// sections are the parts of the page that change.
func (s *Server) sections() []patch {
	now := s.seen.now()
	list := []patch{
		s.section("picture", "picture.html", "", s.pictureOf(now.health)),
		s.section("summary", "summary.html", "", now.health),
		s.section("story", "story.html", "", s.story.now()),
		s.section("mails", "mails.html", "", now.mails),
		s.section("tiers-key", "tierskey.html", "", now.view), // apart, because a button must not change under the mouse
		s.section("tiers", "tiers.html", "", now.view),
	}
	for _, row := range board {
		if row.Service != "" {
			state, note := now.health.stateOf(row.Service)
			list = append(list, s.section("state-"+row.Service, "state.html", "", map[string]string{"Name": row.Service, "State": state, "Note": note}))
		}
	}
	for _, a := range s.journal.now() {
		list = append(list, s.section(fmt.Sprintf("attempt-%d", a.ID), "attempt.html", "attempts-"+a.By, a))
	}
	return list
}

func (s *Server) section(id, name, into string, data any) patch {
	var html strings.Builder
	if err := templates.ExecuteTemplate(&html, name, data); err != nil {
		s.cfg.Log.Error("section not rendered", "section", id, "cause", err)
	}
	return patch{ID: id, HTML: html.String(), Into: into}
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
