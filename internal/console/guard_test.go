package console

import (
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard_RefusesAnotherHostOrOrigin(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	_, port, err := net.SplitHostPort(c.http.Listener.Addr().String())
	require.NoError(t, err)
	for name, test := range map[string]struct {
		host, origin string
		want         int
	}{
		"its own page":                    {"", c.http.URL, http.StatusOK},
		"its own page, by the other name": {"localhost:" + port, "http://localhost:" + port, http.StatusOK},
		"a program":                       {"", "", http.StatusOK},
		"a page from elsewhere":           {"", "https://example.com", http.StatusForbidden},
		"a page of another port":          {"", "http://127.0.0.1:1", http.StatusForbidden},
		"a sandboxed page":                {"", "null", http.StatusForbidden},
		"a name that was rebound":         {"example.com:" + port, "http://example.com:" + port, http.StatusForbidden},
		"another name without an origin":  {"example.com", "", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if test.origin != "" {
				header.Set("Origin", test.origin)
			}
			before := len(c.board.commands())
			status, _ := c.send(http.MethodPost, "/board", test.host, header, url.Values{"command": {"flush redis"}})
			require.Equal(t, test.want, status)
			require.Equal(t, test.want == http.StatusOK, len(c.board.commands()) > before, "nothing happens unless it is allowed")
			status, _ = c.send(http.MethodGet, "/", test.host, header, nil)
			require.Equal(t, test.want, status)
		})
	}
}
