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
func (c *testConsole) open() (next func() string) {
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
	return func() (html string) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(c.t, json.Unmarshal([]byte(data), &html))
				return html
			}
		}
		require.Fail(c.t, "the stream has ended", lines.Err())
		return ""
	}
}

func TestPage_SaysWhatIsKnownAtOnceAndThenWhatHasChanged(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	c.attempt(attempt{By: demonstration, What: "first", Door: "nginx"})
	_, whole := c.send(http.MethodGet, "/", "", nil, nil)
	require.Contains(t, whole, c.render("main.html"))
	require.False(t, c.watched())

	next := c.open()
	require.Equal(t, c.render("main.html"), next())
	require.True(t, c.watched())
	c.attempt(attempt{By: you, What: "pay", Door: "nginx"})
	require.Equal(t, c.render("main.html"), next(), "nothing is sent twice")
	require.Regexp(t, `(?s)id="attempts-you" [^<]*<li id="attempt-2" .*waiting for an answer`, c.render("main.html"))
	require.NoError(t, c.begin(demos[0])) // forgets the attempts of the one before
	html := next()
	require.NotContains(t, html, `"attempt-1"`)
	require.Contains(t, html, `"attempt-2"`)
}
