package console

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
)

func TestBoard_DoesWhatEachButtonSays(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	for _, row := range board {
		for _, command := range row.Commands {
			status, said := c.press("/board", url.Values{"command": {command}})
			if command == "kill pspsim" {
				require.Equal(t, http.StatusConflict, status)
				require.Equal(t, "stack kill pspsim: it is not running\n", said)
				continue
			}
			require.Equal(t, http.StatusOK, status, command)
			require.Equal(t, command+": done in 0.1 s\n", said)
			require.Contains(t, c.board.commands(), command)
		}
	}
}

func TestBoard_RefusesACommandWithoutAButton(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	status, _ := c.press("/board", url.Values{"command": {"promote postgres"}})
	require.Equal(t, http.StatusConflict, status)
	require.Empty(t, c.board.commands())
}

func TestMend_EndsEveryFaultWithTheStoresFirst(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	c.board.services = []stack.ServiceStatus{
		{Name: stack.API1, State: "paused", Remedy: "resume api-1"}, {Name: stack.API2, State: "not ready"}, {Name: stack.Redis, State: "stopped", Remedy: "start redis"}, {Name: stack.Nginx, State: "ready"},
	}
	c.board.faults = []string{"api-1 → redis: partition", "nginx → api-2: slow-300ms"}
	status, said := c.press("/mend", nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []string{"heal api-1 redis", "heal nginx api-2", "start redis", "resume api-1"}, c.board.commands())
	require.Contains(t, said, "start redis")
}

func TestMend_WaitsForADemonstration(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	c.board.services = []stack.ServiceStatus{{Name: stack.API1, State: "stopped", Remedy: "start api-1"}}
	require.NoError(t, c.begin(demos[0]))
	status, said := c.press("/mend", nil)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, said, "a demonstration is running")
	require.Empty(t, c.board.commands())
}

func TestShopper_SaysAtOnceThatNobodyCanOrder(t *testing.T) {
	t.Parallel()
	c := newTestConsole(t, never)
	c.board.services = []stack.ServiceStatus{{Name: stack.Nginx, State: "stopped", Remedy: "start nginx"}}
	status, said := c.press("/shopper", url.Values{"button": {"pay"}, "token": {"tok_visa"}})
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, said, "stack start nginx")
}
