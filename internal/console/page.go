package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

//go:embed page
var files embed.FS

var (
	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"n": func(x float64) string { return fmt.Sprintf("%.1f", x) }, "short": short, "money": money, "join": strings.Join,
	}).ParseFS(files, "page/*.html"))
	static = http.StripPrefix("/static/", http.FileServerFS(files))
)

// short is the beginning of a hash or an ID.
func short(s string) string { return s[:min(len(s), 10)] }

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
	key := s.keyView()
	list := []patch{
		s.section("picture", "picture.html", "", s.pictureOf()),
		s.section("summary", "summary.html", "", s.summary()),
		s.section("story", "story.html", "", s.stage.view()),
		s.section("trickle", "trickle.html", "", s.trickle.view()),
		s.section("mails", "mails.html", "", s.seenMails()),
		s.section("tiers-key", "tierskey.html", "", key), // apart, because a button must not change under the mouse
		s.section("tiers", "tiers.html", "", key),
	}
	h := s.health()
	for _, row := range board {
		if row.Service != "" {
			state, note := h.stateOf(row.Service)
			list = append(list, s.section("state-"+row.Service, "state.html", "", map[string]string{"Name": row.Service, "State": state, "Note": note}))
		}
	}
	for _, a := range s.journal.all() {
		list = append(list, s.section(fmt.Sprintf("attempt-%d", a.ID), "attempt.html", "attempts-"+a.By, attemptView{a}))
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

// attemptView adds to an attempt what the template shows of it.
type attemptView struct{ attempt }

// Outcome is what the client got, in words.
func (a attemptView) Outcome() string { return a.outcome() }

// Tone is how good that is.
func (a attemptView) Tone() string { return a.tone() }

// Lost says which fence stopped a replica, or "".
func (a attemptView) Lost() string { return a.lost() }

// Lasted is the time until the answer.
func (a attemptView) Lasted() string { return brief(a.Took) }

// Open reports whether the diagram is shown at once.
func (a attemptView) Open() bool { return a.By != trickler }

// Diagram is the attempt's sequence diagram.
func (a attemptView) Diagram() diagram { return a.draw() }

// summary says in a few words how the deployment is.
func (s *Server) summary() map[string]any {
	h := s.health()
	var wrong []string
	for _, name := range []string{stack.Nginx, stack.API1, stack.API2, stack.Redis, stack.Postgres, stack.PSP, stack.Mail} {
		if status, known := h.Services[name]; known && status.State != "ready" {
			wrong = append(wrong, titleOf(name)+" "+status.State)
		}
	}
	for _, c := range arrows {
		for _, fault := range h.Faults[c] {
			wrong = append(wrong, titles[c.from]+" → "+titles[c.to]+": "+fault)
		}
	}
	return map[string]any{"Known": len(h.Services) > 0, "Error": h.Error, "Wrong": wrong}
}

// keyView is a key with what the tiers say about it.
type keyView struct {
	tiers.View
	Shown    bool
	Findings []tiers.Finding
}

func (s *Server) keyView() keyView {
	view, shown := s.seenKey()
	return keyView{View: view, Shown: shown, Findings: view.Findings()}
}
