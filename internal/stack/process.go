package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

const (
	// pollInterval is how often a process or a server is looked at while we wait for it: short against the second or so that
	// a start takes, long enough to cost nothing.
	pollInterval = 20 * time.Millisecond

	// maxPollInterval is the same for what costs more to look at, such as containers.
	maxPollInterval = 250 * time.Millisecond

	// killGrace bounds the wait for a process to disappear after SIGKILL; the kernel needs milliseconds, a loaded machine more.
	killGrace = 5 * time.Second
)

// Process identifies one running process beyond doubt. Pids are used again, a pid together with its start time is not: every
// method looks at both, so a recycled pid is never signaled.
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

// Signal sends sig, or returns os.ErrProcessDone when the process is gone, even if its pid is in use again.
func (p Process) Signal(sig syscall.Signal) error {
	if p.PID <= 0 {
		return os.ErrProcessDone
	}
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

// SignalTree sends SIGSTOP or SIGCONT to the process and then to its children, which are the sessions of a PostgreSQL server. A
// process that was stopped makes no more of them meanwhile. It returns os.ErrProcessDone when the process is gone.
func (p Process) SignalTree(sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	pids, err := children(p.PID)
	if err != nil {
		return fmt.Errorf("find the children of process %d: %w", p.PID, err)
	}
	for _, pid := range pids {
		if child, err := identify(pid); err == nil { // one that has ended has nothing to hear
			_ = child.Signal(sig)
		}
	}
	return nil
}

// Stop sends sig and waits until the process is gone; after grace, or when ctx ends, it sends SIGKILL. A process that is gone
// already is no error.
func (p Process) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	if err := p.Signal(sig); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	_ = p.SignalTree(syscall.SIGCONT) // a paused process would not hear sig
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.waitGone(ctx) {
		return nil
	}
	return p.kill()
}

// kill sends SIGKILL and waits until the kernel has removed the process.
func (p Process) kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	if !p.waitGone(ctx) {
		return fmt.Errorf("process %d is still there %s after SIGKILL", p.PID, killGrace)
	}
	return nil
}

// waitGone waits for the process to end and reports whether it did before ctx.
func (p Process) waitGone(ctx context.Context) bool {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for p.Alive() {
		select {
		case <-ctx.Done():
			return !p.Alive()
		case <-ticker.C:
		}
	}
	return true
}

// launchConfig is what a process is started with.
type launchConfig struct {
	path        string
	args        []string
	env         []string // nil: ours
	dir         string
	log         string              // standard output and error are appended to this file
	user        *syscall.Credential // nil: us
	parentDeath syscall.Signal      // sent by the kernel when we die (Linux); 0: the process outlives us
	content     string              // of its configuration file and the like: only counts for digest
	passing     []string            // further arguments, of this start alone: they don't count for digest
}

// digest tells one set of settings from another.
func (c launchConfig) digest() string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", c.path, c.args, c.env, c.dir, c.content))
	return hex.EncodeToString(hash[:8])
}

// launch starts a process in a session of its own, so that a Ctrl-C in our terminal doesn't reach it. The returned channel is
// closed when the process ends while we are still there.
func launch(cfg launchConfig) (Process, <-chan struct{}, error) {
	out, err := os.OpenFile(cfg.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Process{}, nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(cfg.path, slices.Concat(cfg.args, cfg.passing)...) //nolint:noctx // a server outlives the call that starts it
	cmd.Env, cmd.Dir = cfg.env, cfg.dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = sysProcAttr(cfg.user, cfg.parentDeath)

	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited)
		// The parent death signal comes when the starting *thread* ends: this one stays for as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // reaps; how a server ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return Process{}, nil, fmt.Errorf("start %s: %w", cfg.path, err)
	}
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		return Process{}, nil, fmt.Errorf("%s ended at once: %s", cfg.path, tail(cfg.log))
	}
	return p, exited, nil
}
