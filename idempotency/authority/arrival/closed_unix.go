//go:build unix && !linux

package arrival

import (
	"errors"
	"syscall"
)

// hasLeft reports whether the peer of a connection has closed it, or its sending half. It cannot
// see this while bytes that came before the end are unread, such as a pipelined request.
func hasLeft(fd uintptr) bool {
	var next [1]byte
	// Not Read: that waits for net/http's own read, which is under way.
	n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	open := n > 0 || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
	return !open
}
