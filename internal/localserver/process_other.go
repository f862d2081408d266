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

func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// sysProcAttr puts a child in a session of its own, under another user where that is set. Only
// Linux has a parent death signal.
func sysProcAttr(user *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: user}
}
