// Package slowreader has the client that every test of a server's patience needs: one that does not
// read.
package slowreader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
)

// window is the size of the receive buffer, and segment that of a packet, both in bytes, as on
// other networks. Loopback's own would take most of an answer.
const window, segment = 4096, 1460

// Ask connects from a loopback address, sends a GET with an API key or none, and returns the
// connection, whose answer the caller leaves unread. Systems other than Linux have one loopback
// address only.
func Ask(ctx context.Context, from, server, path, apiKey string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, window),
				syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segment))
		})
		return errors.Join(err, failed)
	}}
	if runtime.GOOS == "linux" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	credentials := ""
	if apiKey != "" {
		credentials = "Authorization: Bearer " + apiKey + "\r\n"
	}
	if _, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, credentials); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
