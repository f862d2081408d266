package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
)

func TestDemo_RunsOneAtATime(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	require.NoError(t, c.begin(demos[0]))
	status, said := c.press("/demo", url.Values{"demo": {"wiped"}})
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, said, "is still running")
}

func TestDemo_SaysWhyItCouldNotBeShown(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	status, _ := c.press("/demo", url.Values{"demo": {"wiped"}})
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool { return !c.now().Story.Running }, patience, time.Millisecond)
	story := c.now().Story
	require.False(t, story.Passed())
	require.Contains(t, c.render("main.html"), "It could not be shown: POST /v1/customers: 418")
}

func TestStage_PassesOnlyIfEveryCheckHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		charges int
		err     error
		want    bool
	}{
		"all hold": {1, nil, true}, "one does not": {2, nil, false}, "it was cut short": {1, errors.New("too late"), false},
	} {
		on := act{Server: New(t.Context(), &stack.Topology{}, nil), ctx: t.Context()}
		require.NoError(t, on.begin(demos[0]))
		on.check("orders", 1, 1)
		on.check("charges", test.charges, 1)
		require.NotContains(t, on.render("main.html"), "verdict good", "no verdict before the end")
		require.NotContains(t, on.render("main.html"), "verdict bad")
		on.end(test.err)
		require.Equal(t, test.want, on.state.Story.Passed(), name)
		require.Equal(t, test.want, strings.Contains(on.render("main.html"), "The promise held."), name)
	}
}
