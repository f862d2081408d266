package localserver

import (
	"fmt"
	"os"
	"syscall"
)

// Port is a loopback port that is held: bound to a socket that does not listen. The kernel lends a
// held port to no client and never picks it when a process asks for any port, but a server that
// sets SO_REUSEADDR (all of ours do) can listen on it. So the port stays the same server's over a
// restart.
type Port struct {
	Number int
	// Socket can be passed on to a process (Command.Held), which then holds the port as well.
	Socket *os.File
}

// HoldPort holds a loopback port until Release; 0 picks a free one. It returns a [TakenError] when
// the port is in use.
func HoldPort(number int) (*Port, error) {
	port, err := bindPort(number)
	if err == syscall.EADDRINUSE { //nolint:errorlint // a bare errno of a system call
		if taken := CheckPort(number); taken != nil {
			return nil, taken
		}
		port, err = bindPort(number) // it was given back meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("hold port %d: %w", number, err)
	}
	return port, nil
}

func bindPort(number int) (*Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "held port")
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}})
	}
	var bound syscall.Sockaddr
	if err == nil {
		bound, err = syscall.Getsockname(fd)
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return &Port{Number: bound.(*syscall.SockaddrInet4).Port, Socket: socket}, nil
}

// Release frees the port, unless another process holds it, too. It may be called on nil and more
// than once.
func (p *Port) Release() {
	if p != nil {
		_ = p.Socket.Close()
	}
}
