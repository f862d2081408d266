package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// paintInterval is how soon a page shows what has changed.
	paintInterval = 150 * time.Millisecond
	// listenerBuffer is how many patches a page may be behind. One that is further behind is cut
	// off: it connects again and gets everything anew.
	listenerBuffer = 256
)

// patch is a section of the page as it is now; without HTML it is gone. A page that does not have
// it yet puts it at the top of the list Into.
type patch struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Into string `json:"into,omitempty"`
}

// live sends sections to the pages that are open, when they have changed. Safe for concurrent use.
type live struct {
	render func() []patch

	mu        sync.Mutex
	shown     map[string]string // HTML by ID
	listeners map[chan patch]bool
}

func newLive(render func() []patch) *live {
	return &live{render: render, shown: map[string]string{}, listeners: map[chan patch]bool{}}
}

// run paints until ctx ends.
func (l *live) run(ctx context.Context) {
	tick := time.NewTicker(paintInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.paint()
		}
	}
}

// watched reports whether a page is open.
func (l *live) watched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.listeners) > 0
}

func (l *live) paint() {
	if !l.watched() {
		return
	}
	now := l.render()
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := make(map[string]string, len(now))
	for _, p := range now {
		shown[p.ID] = p.HTML
		if l.shown[p.ID] != p.HTML {
			l.send(p)
		}
	}
	for id := range l.shown {
		if _, is := shown[id]; !is {
			l.send(patch{ID: id})
		}
	}
	l.shown = shown
}

// send needs mu.
func (l *live) send(p patch) {
	for listener := range l.listeners {
		select {
		case listener <- p:
		default:
			close(listener)
			delete(l.listeners, listener)
		}
	}
}

// listen returns all sections as they are, and a channel of those that change, which is closed for
// a listener that does not keep up.
func (l *live) listen() ([]patch, chan patch) {
	now := l.render()
	l.mu.Lock()
	defer l.mu.Unlock()
	listener := make(chan patch, listenerBuffer)
	l.listeners[listener] = true
	for _, p := range now {
		l.shown[p.ID] = "" // what changes before the next look is sent again
	}
	return now, listener
}

func (l *live) leave(listener chan patch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, listener)
}

// serveEvents is the stream of patches (HTML Living Standard, "Server-sent events").
func (l *live) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	now, listener := l.listen()
	defer l.leave(listener)
	flush := http.NewResponseController(w).Flush
	for _, p := range now {
		if writeEvent(w, p) != nil {
			return
		}
	}
	for {
		if flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case p, ok := <-listener:
			if !ok || writeEvent(w, p) != nil {
				return
			}
		}
	}
}

func writeEvent(w http.ResponseWriter, p patch) error {
	data, err := json.Marshal(p) // on one line, as an event needs it
	if err != nil {
		return fmt.Errorf("encode a section: %w", err)
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", data)
	return err
}
