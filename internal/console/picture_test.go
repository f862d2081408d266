package console

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
)

func TestPicture_SaysWhatIsBrokenAndWhatIsInFlight(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	c.board.services = []stack.ServiceStatus{{Name: stack.API1, State: "paused"}, {Name: stack.Redis, State: "ready"}}
	c.board.faults = []string{"api-2 → redis: partition", "api-2 → redis: slow-300ms"}
	c.look(t.Context())
	a := c.attempt(attempt{By: you, Door: stack.Nginx})
	a.add(at(1, stack.API1, stack.Redis, "set"))

	page := c.render("main.html")
	_, html, _ := strings.Cut(page, `id="picture"`)
	html, _, _ = strings.Cut(html, "</figure>")
	words := strings.Split(html, `"`)[5]
	require.Contains(t, words, "api-1 is paused.")
	require.Contains(t, words, "Fault from api-2 to Redis: partition, slow-300ms.")
	require.Contains(t, words, "From clients to nginx: 1 in flight")
	require.Contains(t, words, "From nginx to api-1: 1 in flight")
	require.Equal(t, 2, strings.Count(html, "✕ partition, slow-300ms"), "in both layouts")
	require.Equal(t, 2, strings.Count(html, `class="node paused"`))

	require.Contains(t, page, "api-1 paused · api-2 → Redis: partition · api-2 → Redis: slow-300ms")
}

func TestPicture_NodesStayWithinItAndApart(t *testing.T) {
	t.Parallel()
	for _, l := range layouts {
		for c := range l.spots {
			require.Contains(t, arrows, c)
		}
		for name, at := range l.Nodes {
			require.True(t, at.X-l.Node.X/2 >= 0 && at.X+l.Node.X/2 <= l.Size.X, "%s: %s", l.Name, name)
			require.True(t, at.Y-l.Node.Y/2 >= 0 && at.Y+l.Node.Y/2 <= l.Size.Y, "%s: %s", l.Name, name)
			for other, there := range l.Nodes {
				apart := math.Abs(at.X-there.X) >= l.Node.X || math.Abs(at.Y-there.Y) >= l.Node.Y
				require.True(t, apart || name == other, "%s: %s and %s", l.Name, name, other)
			}
		}
	}
}
