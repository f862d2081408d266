package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// open reads a page's stream of events.
func (c *testConsole) open() (next func() patch) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	c.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.http.URL+"/events", http.NoBody)
	require.NoError(c.t, err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(c.t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (p patch) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(c.t, json.Unmarshal([]byte(data), &p))
				return p
			}
		}
		require.Fail(c.t, "the stream has ended", lines.Err())
		return p
	}
}

func TestLive_SendsEverythingAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	next := c.open()
	for _, want := range c.sections() {
		require.Equal(t, want, next())
	}
	c.live.paint()
	c.journal.begin(attempt{By: you, What: "pay", Door: "nginx"})
	c.live.paint()
	attempt := func() patch {
		for p := next(); ; p = next() {
			if p.ID == "attempt-1" {
				return p
			}
		}
	}
	made := attempt()
	require.Equal(t, "attempts-you", made.Into)
	require.Contains(t, made.HTML, "waiting for an answer")
	c.journal.drop(you)
	c.live.paint()
	require.Equal(t, patch{ID: "attempt-1"}, attempt(), "it is gone")
}

func TestLive_CutsOffAPageThatDoesNotKeepUp(t *testing.T) {
	t.Parallel()
	l := newLive(func() []patch { return nil })
	_, listener := l.listen()
	for range listenerBuffer + 1 {
		l.mu.Lock()
		l.send(patch{ID: "a"})
		l.mu.Unlock()
	}
	require.False(t, l.watched())
	l.leave(listener) // as its handler does
	n := 0
	for range listener {
		n++
	}
	require.Equal(t, listenerBuffer, n)
}
