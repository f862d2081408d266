package localserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// listen takes a loopback port; 0 is a free one.
func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", Loopback(port))
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestCheckPort_NamesTheOwner(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::]:0"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		require.NoError(t, err)
		_, err = HoldPort(portOf(l))
		require.ErrorContains(t, err, fmt.Sprintf("port %d is taken by %s (pid %d)", portOf(l), filepath.Base(os.Args[0]), os.Getpid()))
		taken := &TakenError{}
		require.ErrorAs(t, err, &taken)
		require.False(t, taken.Lent)
		require.NoError(t, l.Close())
	}
}

func TestCheckPort_TellsALentPortFromATakenOne(t *testing.T) {
	t.Parallel()
	l, err := listen(0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })

	_, err = HoldPort(client.LocalAddr().(*net.TCPAddr).Port)
	taken := &TakenError{}
	require.ErrorAs(t, err, &taken)
	require.True(t, taken.Lent)
	require.ErrorContains(t, err, fmt.Sprintf("lent to a client's connection of %s (pid %d)", filepath.Base(os.Args[0]), os.Getpid()))
}

func TestHoldPort_KeepsThePortForItsServer(t *testing.T) {
	t.Parallel()
	port, err := HoldPort(0)
	require.NoError(t, err)
	t.Cleanup(port.Release)
	for range 3 { // over restarts
		free, err := HoldPort(port.Number)
		require.NoError(t, err)
		free.Release()
	}
	again, err := HoldPort(port.Number)
	require.NoError(t, err, "two may hold it: one hands it over to the other")
	again.Release()
}

// Linux lends every second port of its range to clients and picks the others for those who ask for
// any port, so half of a thousand would meet the held ones.
func TestHoldPort_IsLentToNoClient(t *testing.T) {
	t.Parallel()
	held := map[int]bool{}
	for range 500 {
		port, err := HoldPort(0)
		require.NoError(t, err)
		t.Cleanup(port.Release)
		require.False(t, held[port.Number], "port %d twice", port.Number)
		held[port.Number] = true
	}
	for range 500 {
		l, err := listen(0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		require.False(t, held[portOf(l)], "port %d is held", portOf(l))
	}
}
