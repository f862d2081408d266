package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	psnet "github.com/shirou/gopsutil/v4/net"
)

// Loopback is the address of a port on 127.0.0.1.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// listen takes a loopback port; 0 is a free one.
func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", Loopback(port)) // never blocks: no name to resolve
}

// A TakenError says that a port can't be listened on.
type TakenError struct {
	Port int
	// Owners describes the process, such as "nginx (pid 42)".
	Owners string
	// Lent is set if no process listens on the port, but a client's connection uses it as its own
	// end. The kernel lends it such a port out of net.ipv4.ip_local_port_range, for as long as the
	// connection lasts and up to a minute longer (TIME_WAIT).
	Lent bool
}

func (e *TakenError) Error() string {
	if e.Lent {
		return fmt.Sprintf("port %d is lent to a client's connection of %s", e.Port, e.Owners)
	}
	return fmt.Sprintf("port %d is taken by %s", e.Port, e.Owners)
}

// CheckPort returns a [TakenError] when a server could not listen on a loopback port now. A probe
// would take the other server for ours.
func CheckPort(port int) error {
	for try := 1; ; try++ {
		l, err := listen(port)
		switch {
		case err == nil:
			return l.Close()
		case !errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
		// A process that is being started has copies of our sockets until it runs its program, also
		// of one that has just listened here. So look again if nobody has the port any more.
		taken, found := takenBy(port)
		if found || try == 3 {
			return taken
		}
	}
}

// takenBy finds who listens on a port, or who uses it for a connection if nobody listens.
func takenBy(port int) (taken *TakenError, found bool) {
	taken = &TakenError{Port: port, Owners: "a process that we may not look at (another user's, or in a container)"}
	sockets, _ := psnet.Connections("tcp")
	sockets = slices.DeleteFunc(sockets, func(s psnet.ConnectionStat) bool { return int(s.Laddr.Port) != port })
	isListener := func(s psnet.ConnectionStat) bool { return s.Status == "LISTEN" }
	if taken.Lent = len(sockets) > 0 && !slices.ContainsFunc(sockets, isListener); taken.Lent {
		taken.Owners = "a process that has ended"
	}
	for _, s := range sockets {
		if s.Pid != 0 && isListener(s) != taken.Lent {
			name, _ := handle(int(s.Pid)).Name()
			taken.Owners = fmt.Sprintf("%s (pid %d)", name, s.Pid)
		}
	}
	return taken, len(sockets) > 0
}
