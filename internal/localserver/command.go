package localserver

import (
	"bytes"
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
)

// serverPath is the PATH of servers. It is not ours, which `go run` changes, so that it would look
// like a change of settings.
const serverPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// Command is what a process is started with.
type Command struct {
	Path string
	Args []string
	Env  []string // nil: ours
	Dir  string
	// Log is the file that standard output and error are appended to.
	Log string
	// User is who the process runs as; nil: us.
	User *syscall.Credential
	// ParentDeath is sent by the kernel when we die (Linux); 0: the process outlives us.
	ParentDeath syscall.Signal
	// Content stands for a configuration file and the like in Digest.
	Content string
	// Once are further arguments, of this start alone: Digest leaves them out.
	Once []string
	// Held are sockets that the process keeps open and does not use, see [Port].
	Held []*os.File
}

// Digest tells one set of settings from another.
func (c Command) Digest() string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", c.Path, c.Args, c.Env, c.Dir, c.Content))
	return hex.EncodeToString(hash[:8])
}

// Start starts the process in a session of its own, so that a Ctrl-C in our terminal does not reach
// it.
func (c Command) Start() (Process, error) {
	out, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Process{}, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(c.Path, slices.Concat(c.Args, c.Once)...) //nolint:noctx // a server outlives the call that starts it
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Held
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = sysProcAttr(c.User, c.ParentDeath)
	started := make(chan error)
	go func() { // on a thread of its own, because ParentDeath is sent when the starting thread ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // reaps; how a server ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return Process{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p, err := identify(cmd.Process.Pid)
	if err != nil {
		return Process{}, fmt.Errorf("%s ended at once: %s", c.Path, Tail(c.Log))
	}
	return p, nil
}

// WithLog adds the end of a log file to an error, unless the error is nil or says that the user
// interrupted.
func WithLog(err error, path string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w; the end of %s:\n%s", err, path, Tail(path))
}

// Tail returns the last lines of a log file, for an error message.
func Tail(path string) string {
	const lines = 8
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	parts := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(parts[max(0, len(parts)-lines):], []byte("\n")))
}
