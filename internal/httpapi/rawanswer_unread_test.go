package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestListen_CutsAClientOffThatReadsNothing: the answer is larger than what the connection's
// buffers hold, and smaller than what takes a second at the slowest rate.
func TestListen_CutsAClientOffThatReadsNothing(t *testing.T) {
	t.Parallel()
	smallBuffers := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, 4096)
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
		})
	}
	listen := net.ListenConfig{Control: smallBuffers}
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	written := make(chan error, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, unreadRate-1000))
		written <- err
	})}
	go func() { _ = server.Serve(listener{l, 50 * time.Millisecond}) }()
	t.Cleanup(func() { _ = server.Close() })
	dialer := net.Dialer{Control: smallBuffers}
	conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	select {
	case err = <-written:
	case <-time.After(time.Minute):
		err = errors.New("it is still being written")
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
