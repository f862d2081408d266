package localserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	psnet "github.com/shirou/gopsutil/v4/net"
)

// Loopback is the address of a port on 127.0.0.1.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Port is a loopback port that is held: bound to a socket that does not listen. The kernel lends a
// held port to no client and never picks it when a process asks for any port, but a server that
// sets SO_REUSEADDR (all of ours do) can listen on it. So the port stays the same server's over a
// restart. Only Linux lets a server listen there; elsewhere the port is merely one that was free.
type Port struct {
	Number int
	// Socket can be passed on to a process (Command.Held), which then holds the port as well. It is
	// nil where the system is not Linux.
	Socket *os.File
}

// Release frees the port, unless another process holds it, too. It may be called on nil and more
// than once.
func (p *Port) Release() {
	if p != nil {
		_ = p.Socket.Close()
	}
}

// HoldPort holds a loopback port until Release; 0 picks a free one. It returns a [TakenError] when
// the port is in use.
func HoldPort(number int) (*Port, error) {
	for try := 1; ; try++ {
		port, err := bindPort(number)
		if err == nil && runtime.GOOS != "linux" {
			port.Release()
			port.Socket = nil
		}
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return port, err
		}
		// A process that is being started has copies of our sockets until it runs its program, also
		// of one that has just listened here. So look again if nobody has the port any more.
		if taken, found := takenBy(number); found || try == 3 {
			return nil, taken
		}
	}
}

func bindPort(number int) (*Port, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("hold port %d: %w", number, err)
	}
	port := &Port{Socket: os.NewFile(uintptr(fd), "held port")}
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}))
	bound, nameErr := syscall.Getsockname(fd)
	if err = errors.Join(err, nameErr); err != nil {
		port.Release()
		return nil, fmt.Errorf("hold port %d: %w", number, err)
	}
	port.Number = bound.(*syscall.SockaddrInet4).Port
	return port, nil
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
