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
	before := ""
	return func() (html string) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(c.t, json.Unmarshal([]byte(data), &html))
				require.NotEqual(c.t, before, html, "nothing is sent twice")
				before = html
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
	c.look(t.Context()) // the page's own look will see the same
	c.attempt(attempt{By: demonstration, What: "first", Door: "nginx"})
	_, whole := c.send(http.MethodGet, "/", "", nil, nil)
	require.Contains(t, whole, c.render("main.html"))

	next := c.open()
	require.Equal(t, c.render("main.html"), next())
	c.attempt(attempt{By: you, What: "pay", Door: "nginx"})
	html := next()
	for !strings.Contains(html, `"attempt-2"`) { // a look may come before
		html = next()
	}
	require.Regexp(t, `(?s)id="attempts-you" [^<]*<li id="attempt-2" .*waiting for an answer`, html)
	require.NoError(t, c.begin(demos[0])) // forgets the attempts of the one before
	for strings.Contains(html, `"attempt-1"`) {
		html = next()
	}
	require.Contains(t, html, `"attempt-2"`)
}
