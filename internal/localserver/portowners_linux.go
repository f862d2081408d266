package localserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tcpListen is the state of a listening socket in /proc/net/tcp (include/net/tcp_states.h).
const tcpListen = "0A"

// portPIDs finds who listens on a local TCP port. If none listens, it finds who uses the port for a
// connection (lent).
func portPIDs(port int) (pids []int, lent bool) {
	listening, connected := socketInodes(port)
	if len(listening) > 0 {
		return inodePIDs(listening), false
	}
	return inodePIDs(connected), len(connected) > 0
}

// socketInodes reads the inodes of the sockets on a local port from /proc/net/tcp and tcp6
// (proc_pid_net(5)).
func socketInodes(port int) (listening, connected []string) {
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, _ := os.ReadFile(table)
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || !strings.HasSuffix(fields[1], suffix) {
				continue
			}
			if fields[3] == tcpListen {
				listening = append(listening, fields[9])
			} else {
				connected = append(connected, fields[9])
			}
		}
	}
	return listening, connected
}

// inodePIDs finds the processes that have one of the sockets open.
func inodePIDs(inodes []string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if err != nil || !isSocket || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}
