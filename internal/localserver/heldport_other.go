//go:build !linux

package localserver

import (
	"fmt"
	"net"
	"os"
)

// Port is a loopback port. Only Linux lets a server listen on a port that another socket holds, so
// here it is merely one that was free at one moment.
type Port struct {
	Number int
	Socket *os.File // always nil
}

// HoldPort looks whether a loopback port is free; 0 picks a free one. It returns a [TakenError]
// when the port is in use.
func HoldPort(number int) (*Port, error) {
	if number != 0 {
		return &Port{Number: number}, CheckPort(number)
	}
	l, err := listen(0)
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return &Port{Number: l.Addr().(*net.TCPAddr).Port}, l.Close()
}

// Release does nothing.
func (p *Port) Release() {}
