package localserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc, which is the same on every architecture that Go knows.
const tick = time.Second / 100

// bootID tells one boot from the next, after which pids and start times begin anew.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// startStamp reads the start time of a process, field 22 of /proc/<pid>/stat (proc_pid_stat(5)),
// and fails for one that has ended.
func startStamp(pid int) (string, error) {
	fields, err := procStat(pid)
	if err != nil {
		return "", err
	}
	if state := fields[0][0]; (state == 'Z' || state == 'X') && !hasThreads(pid) {
		return "", os.ErrProcessDone
	}
	return bootID() + "/" + string(fields[19]), nil
}

// hasThreads reports whether other threads than the first one are left. When a process is killed,
// the first one is often a zombie a few milliseconds before the others have ended, and so before
// the kernel has closed the process's sockets.
func hasThreads(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(tasks) > 1
}

// procStat returns the fields of /proc/<pid>/stat from the third on, which is the state.
func procStat(pid int) ([][]byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// Field 2 is the program's name in parentheses and may contain spaces and parentheses itself.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return nil, errors.New("unknown format of /proc/<pid>/stat")
	}
	return fields, nil
}

// cpuTime adds the fields 14 to 17 of /proc/<pid>/stat: the time in user and in system mode of the
// process, and of its children that have ended.
func cpuTime(pid int) (total time.Duration, err error) {
	fields, err := procStat(pid)
	if err != nil {
		return 0, err
	}
	for _, field := range fields[11:15] {
		ticks, _ := strconv.ParseInt(string(field), 10, 64) // the kernel writes nothing but numbers here
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// sysProcAttr puts a child in a session of its own, under another user and with a signal for when
// we die where these are set.
func sysProcAttr(user *syscall.Credential, parentDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: user, Pdeathsig: parentDeath}
}
