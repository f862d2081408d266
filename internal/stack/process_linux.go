package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// bootID tells one boot from the next, after which pids and start times begin anew.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// startStamp reads the start time of a process, field 22 of /proc/<pid>/stat (proc_pid_stat(5)), and fails for a zombie.
func startStamp(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// Field 2 is the program's name in parentheses and may contain spaces and parentheses itself.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 20 {
		return "", errors.New("unknown format of /proc/<pid>/stat")
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "", os.ErrProcessDone
	}
	return bootID() + "/" + string(fields[19]), nil
}

// processName returns the program name of a process, or "".
func processName(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// sysProcAttr gives a child its own session and, when asked, another user and a signal for when we die.
func sysProcAttr(user *syscall.Credential, parentDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: user, Pdeathsig: parentDeath}
}
