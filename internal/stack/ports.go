package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// checkPorts fails when somebody listens on one of the ports that a service is about to take, and names them.
func checkPorts(service string, numbers []int) error {
	var errs []error
	for _, port := range numbers {
		l, err := listen(port)
		switch {
		case err == nil:
			_ = l.Close()
		case errors.Is(err, syscall.EADDRINUSE):
			errs = append(errs, fmt.Errorf("port %d, which %s needs, is taken by %s", port, service, portOwners(port)))
		default:
			errs = append(errs, fmt.Errorf("port %d for %s: %w", port, service, err))
		}
	}
	return errors.Join(errs...)
}

// listen takes a loopback port; 0 is a free one.
func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback(port)) // never blocks: no name to resolve
}

// portOwners describes the processes that have a socket on a local TCP port.
func portOwners(port int) string {
	var names []string
	for _, pid := range portPIDs(port) {
		names = append(names, fmt.Sprintf("%s (pid %d)", processName(pid), pid))
	}
	if len(names) == 0 {
		return "a process that we may not look at (another user's, or in a container)"
	}
	return strings.Join(names, ", ")
}
