//go:build !linux

package stack

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// portPIDs asks lsof who listens on a local TCP port.
func portPIDs(port int) []int {
	out, _ := exec.CommandContext(context.Background(), "lsof", "-t", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN").Output()
	var pids []int
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
