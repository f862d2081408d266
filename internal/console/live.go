package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// paintInterval is how soon a page shows what has changed.
const paintInterval = 150 * time.Millisecond

// patch is a section of the page as it is now; without HTML it is gone. A page that does not have
// it yet puts it at the top of the list Into.
type patch struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Into string `json:"into,omitempty"`
}

// watched reports whether a page is open.
func (s *Server) watched() bool { return s.pages.Load() > 0 }

// serveEvents is the stream of patches of one page (HTML Living Standard, "Server-sent events"):
// all sections, and then those that have changed.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	s.pages.Add(1)
	defer s.pages.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	shown := map[string]string{} // HTML by ID
	for {
		var changed []patch
		changed, shown = changes(shown, s.sections())
		for _, p := range changed {
			data, err := json.Marshal(p) // on one line, as an event needs it
			if err == nil {
				_, err = fmt.Fprintf(w, "data: %s\n\n", data)
			}
			if err != nil {
				return // the page is gone
			}
		}
		if http.NewResponseController(w).Flush() != nil || wait.Pause(r.Context(), paintInterval) != nil {
			return
		}
	}
}

// changes are the patches that bring a page from what it shows to what is now.
func changes(shown map[string]string, sections []patch) (changed []patch, now map[string]string) {
	now = map[string]string{}
	for _, p := range sections {
		now[p.ID] = p.HTML
		if shown[p.ID] != p.HTML {
			changed = append(changed, p)
		}
	}
	for id := range shown {
		if _, is := now[id]; !is {
			changed = append(changed, patch{ID: id})
		}
	}
	return changed, now
}
