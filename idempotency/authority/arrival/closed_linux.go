package arrival

import "golang.org/x/sys/unix"

// hasLeft reports whether the peer of a connection has closed it, or its sending half. POLLRDHUP
// (poll(2)) says so even while bytes that came before the end are unread, such as a pipelined
// request.
func hasLeft(fd uintptr) bool {
	events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // descriptors are small
	n, err := unix.Poll(events, 0)
	return err == nil && n > 0 // POLLERR and POLLHUP are always asked for
}
