//go:build !linux

package localserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startStamp asks ps for the start time of a process, and fails for a zombie.
func startStamp(pid int) (string, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("ps: %w", err)
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(state, "Z") {
		return "", os.ErrProcessDone
	}
	return strings.TrimSpace(start), nil
}

// isPaused reports whether a process is stopped by a signal.
func isPaused(pid int) bool {
	out, _ := exec.CommandContext(context.Background(), "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.HasPrefix(strings.TrimSpace(string(out)), "T")
}

// children asks pgrep, which fails when there are none.
func children(parent int) (pids []int, err error) {
	out, _ := exec.CommandContext(context.Background(), "pgrep", "-P", strconv.Itoa(parent)).Output()
	for _, text := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// processName returns the program name of a process, or "".
func processName(pid int) string {
	out, _ := exec.CommandContext(context.Background(), "ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out))
}

// sysProcAttr puts a child in a session of its own, under another user where that is set. Only
// Linux has a parent death signal.
func sysProcAttr(user *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: user}
}
