//go:build !linux

package localserver

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// startStamp fails for a zombie.
func startStamp(pid int) (string, error) {
	started, err := handle(pid).CreateTime()
	if states, _ := handle(pid).Status(); slices.Contains(states, process.Zombie) {
		err = os.ErrProcessDone
	}
	return strconv.FormatInt(started, 10), err
}

func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// sysProcAttr puts a child in a session of its own, under another user where that is set. Only
// Linux has a parent death signal.
func sysProcAttr(user *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: user}
}
