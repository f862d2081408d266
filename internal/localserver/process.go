package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// PollInterval is how often a process or a server is looked at while we wait for it: short
	// against the second or so that a start takes, long enough to cost nothing.
	PollInterval = 20 * time.Millisecond

	// killGrace bounds the wait for a process to end after SIGKILL; the kernel needs milliseconds,
	// a loaded machine more.
	killGrace = 5 * time.Second
)

// Process identifies one running process beyond doubt. A pid is used again, a pid together with its
// start time is not. Every method compares both, so another process that has got the pid is never
// signaled.
type Process struct {
	PID int `json:"pid"`
	// Start is an opaque stamp of when the process started, comparable for equality on one machine.
	Start string `json:"start"`
}

// identify returns the identity of the process that has this pid now.
func identify(pid int) (Process, error) {
	start, err := startStamp(pid)
	if err != nil {
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Process{PID: pid, Start: start}, nil
}

// Alive reports whether the process still runs; a zombie does not.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	start, err := startStamp(p.PID)
	return err == nil && start == p.Start
}

// Signal sends sig, or returns os.ErrProcessDone when the process is gone, even if its pid is in
// use again.
func (p Process) Signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.PID) // on Linux a pidfd: it stays with the process that we then check
	if err != nil {
		return fmt.Errorf("find process %d: %w", p.PID, err)
	}
	defer func() { _ = handle.Release() }()
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return handle.Signal(sig)
}

// SignalTree sends SIGSTOP or SIGCONT to the process and then to its children, which are the
// sessions of a PostgreSQL server. A stopped process starts no further children meanwhile. It
// returns os.ErrProcessDone when the process is gone.
func (p Process) SignalTree(sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	found, err := handle(p.PID).Children()
	if err != nil {
		return fmt.Errorf("find the children of process %d: %w", p.PID, err)
	}
	for _, one := range found {
		if child, err := identify(int(one.Pid)); err == nil { // one that has ended needs no signal
			_ = child.Signal(sig)
		}
	}
	return nil
}

// Stop sends sig and waits until the process is gone; after grace, or when ctx ends, it sends
// SIGKILL. A process that is gone already is no error.
func (p Process) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	if err := p.Signal(sig); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	_ = p.SignalTree(syscall.SIGCONT) // a paused process does not handle sig
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.Wait(ctx) == nil {
		return nil
	}
	return p.Kill()
}

// Kill sends SIGKILL and waits until the process and its sockets are gone. A process that is gone
// already is no error.
func (p Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		return fmt.Errorf("%s after SIGKILL: %w", killGrace, err)
	}
	return nil
}

// KillOrphans kills the other processes of the process's group, such as nginx's workers, if the
// process itself is gone. Its group's number may be in use again by then, so it kills only
// processes whose working directory is dir.
func (p Process) KillOrphans(dir string) error {
	if dir == "" {
		return nil
	}
	pids, err := process.Pids()
	for _, pid := range pids {
		if group, _ := syscall.Getpgid(int(pid)); group != p.PID || p.Alive() {
			continue
		}
		orphan, _ := identify(int(pid)) // before its directory is read, so that no other process is killed
		if workingDir, _ := handle(int(pid)).Cwd(); workingDir == dir {
			err = errors.Join(err, orphan.Kill())
		}
	}
	return err
}

// Wait returns nil when the process has ended before ctx does.
func (p Process) Wait(ctx context.Context) error {
	return wait.Until(ctx, PollInterval, func(context.Context) error {
		if p.Alive() {
			return fmt.Errorf("process %d still runs", p.PID)
		}
		return nil
	})
}

// IsPaused reports whether the process is stopped by a signal.
func (p Process) IsPaused() bool {
	states, _ := handle(p.PID).Status()
	return p.Alive() && slices.Contains(states, process.Stop)
}

func handle(pid int) *process.Process {
	return &process.Process{Pid: int32(pid)} //nolint:gosec // no kernel has a pid of more bits
}

// CPUTime is the CPU time that a process and all its children, including those that have ended,
// have used so far, in all threads, to a hundredth of a second. The difference between two calls is
// all that a server of several processes has done meanwhile. errors.ErrUnsupported: not on Linux.
func CPUTime(pid int) (time.Duration, error) {
	total, ownErr := cpuTime(pid)
	found, err := handle(pid).Children()
	for _, child := range found {
		used, _ := cpuTime(int(child.Pid)) // one that has ended counts for its parent
		total += used
	}
	return total, cmp.Or(ownErr, err)
}
