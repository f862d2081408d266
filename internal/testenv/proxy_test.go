package testenv

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for an answer that must not come; it costs that much time, so
// it is short.
const patience = 50 * time.Millisecond

// conversation is a client connected to an echo server through a proxy.
type conversation struct {
	t      *testing.T
	proxy  *Proxy
	conn   net.Conn
	reader *bufio.Reader
}

func converse(t *testing.T) *conversation {
	t.Helper()
	return converseWith(t, func(line string) string { return line })
}

func converseWith(t *testing.T, answer func(string) string) *conversation {
	t.Helper()
	c := &conversation{t: t, proxy: NewProxy(t, serveLines(t, answer))}
	c.connect()
	return c
}

func (c *conversation) connect() {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.proxy.Addr)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	c.conn, c.reader = conn, bufio.NewReader(conn)
}

func (c *conversation) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
}

func (c *conversation) hear(within time.Duration) (string, error) {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(within)))
	line, err := c.reader.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *conversation) requireEcho(line string) {
	c.t.Helper()
	c.say(line)
	heard, err := c.hear(testTimeout)
	require.NoError(c.t, err)
	require.Equal(c.t, line, heard)
}

// serveLines starts a server that answers each line with another, and returns its address.
func serveLines(t *testing.T, answer func(string) string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = io.WriteString(conn, answer(lines.Text())+"\n")
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestProxy_CountsTurnsAndNotPackets(t *testing.T) {
	t.Parallel()
	c := converse(t)
	require.Equal(t, 3, c.proxy.Count(func() {
		for range 3 {
			c.requireEcho("hello")
		}
	}))
	require.Zero(t, c.proxy.Count(func() {}))
}

func TestProxy_CountsAnAnswerInPiecesOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	c := converseWith(t, func(string) string { return long })
	require.Equal(t, 2, c.proxy.Count(func() {
		for range 2 {
			c.say("tell me all")
			heard, err := c.hear(testTimeout)
			require.NoError(t, err)
			require.Len(t, heard, len(long))
		}
	}))
}

func TestProxy_DelaysTheChosenAnswer(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.proxy.FailNext("slow", Fault{Delay: 3 * patience})
	c.requireEcho("quick")
	c.say("slow")
	_, err := c.hear(patience)
	require.ErrorContains(t, err, "timeout")
	heard, err := c.hear(testTimeout)
	require.NoError(t, err)
	require.Equal(t, "slow", heard)
	c.requireEcho("slow")
}

func TestProxy_LosesAnswersOfOneConnection(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.proxy.FailNext("", Fault{Lose: true})
	for range 2 {
		c.say("is anybody there?")
		_, err := c.hear(patience)
		require.ErrorContains(t, err, "timeout")
	}
	c.connect()
	c.requireEcho("hello")
}

func TestProxy_CutsInsteadOfAnswering(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.proxy.FailNext("", Fault{Cut: true})
	c.say("hello")
	_, err := c.hear(testTimeout)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "timeout")
	require.Equal(t, 1, c.proxy.RoundTrips(), "the server did answer")
}

func TestProxy_PartitionsAndHeals(t *testing.T) {
	t.Parallel()
	c := converse(t)
	c.requireEcho("before")
	c.proxy.Partition()
	c.say("lost")
	_, err := c.hear(patience)
	require.ErrorContains(t, err, "timeout")

	c.connect()
	c.say("lost, too")
	_, err = c.hear(patience)
	require.ErrorContains(t, err, "timeout")

	c.proxy.Heal()
	_, err = c.hear(testTimeout)
	require.Error(t, err, "what was swallowed is missing, so the connection is of no use")
	require.NotContains(t, err.Error(), "timeout")
	c.connect()
	c.requireEcho("after")
}

func TestProxy_EndsConnectionsWhoseServerIsAway(t *testing.T) {
	t.Parallel()
	c := &conversation{t: t, proxy: NewProxy(t, net.JoinHostPort("127.0.0.1", pickPort(t)))} // where no server listens
	c.connect()
	_, err := c.hear(testTimeout)
	require.ErrorIs(t, err, io.EOF)
}
