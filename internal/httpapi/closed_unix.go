//go:build unix

package httpapi

import (
	"context"
	"errors"
	"syscall"
)

// isClosed reports whether the client has closed the connection of the request that ctx belongs to.
// net/http finds that out, too, but in another goroutine: after a pause of the process a buffered
// request could be executed first.
func isClosed(ctx context.Context) bool {
	conn, ok := ctx.Value(connKey{}).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	// Not Read: that waits for net/http's own read, which is under way.
	err = raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open := n > 0 || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		closed = !open
	})
	return closed || err != nil
}
