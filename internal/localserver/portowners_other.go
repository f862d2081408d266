//go:build !linux

package localserver

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// portPIDs asks lsof who listens on a local TCP port. It can't tell whether the port is lent to a
// client.
func portPIDs(port int) (pids []int, lent bool) {
	out, _ := exec.CommandContext(context.Background(), "lsof", "-t", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN").Output()
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, false
}
