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
	require.True(t, c.watched())
	c.journal.begin(attempt{By: you, What: "pay", Door: "nginx"})
	made := next()
	for made.ID != "attempt-1" { // the picture changes, too
		made = next()
	}
	require.Equal(t, "attempts-you", made.Into)
	require.Contains(t, made.HTML, "waiting for an answer")
	c.journal.drop(you)
	gone := next()
	for gone.ID != "attempt-1" {
		gone = next()
	}
	require.Equal(t, patch{ID: "attempt-1"}, gone)
}

func TestLive_SendsNothingTwice(t *testing.T) {
	t.Parallel()
	sections := []patch{{ID: "a", HTML: "1"}, {ID: "b", HTML: "2"}}
	changed, shown := changes(nil, sections)
	require.Equal(t, sections, changed)
	changed, shown = changes(shown, []patch{{ID: "a", HTML: "1"}, {ID: "b", HTML: "3"}})
	require.Equal(t, []patch{{ID: "b", HTML: "3"}}, changed)
	changed, _ = changes(shown, sections[:1])
	require.Equal(t, []patch{{ID: "b"}}, changed)
}
