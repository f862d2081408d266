package programs

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// host is where programs are looked for and installed.
type host struct {
	dirs   []string // of programs
	isRoot bool
	// policy is the file that Debian's maintainer scripts ask whether they may start a service
	// (invoke-rc.d(8)).
	policy string
	// showEvery so long a line says how far an installation is.
	showEvery time.Duration
}

func thisHost() host {
	// Debian's servers are in /usr/sbin, which is not on everybody's PATH.
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin", "/sbin")
	return host{dirs, os.Geteuid() == 0, "/usr/sbin/policy-rc.d", 5 * time.Second}
}

// manager is the machine's package manager.
func (h host) manager() (m manager, ok bool) {
	for _, m := range managers {
		if h.find(m.program) != "" {
			return m, true
		}
	}
	return m, false
}

// find returns the path of a program, or "".
func (h host) find(name string) string {
	path, _ := (&Program{files: []string{name}}).findIn(h.dirs)
	return path
}

// paste is the command of the machine's package manager, or of each that we know.
func (h host) paste(missing []*Program) (lines string) {
	known := managers
	if m, ok := h.manager(); ok {
		known = []manager{m}
	}
	for _, m := range known {
		lines += "\n  " + m.paste(missing, h.isRoot)
	}
	return lines
}

// administrator is a command that may install, with sudo unless we are root.
func (h host) administrator(ctx context.Context, m manager, command ...string) *exec.Cmd {
	path := "PATH=" + strings.Join(h.dirs, string(filepath.ListSeparator))
	command = slices.Concat([]string{"env", path, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1"}, command)
	if m.asRoot && !h.isRoot {
		command = slices.Concat([]string{"sudo", "-n"}, command) // -n: nobody is there to type a password
	}
	cmd := exec.CommandContext(ctx, h.find(command[0]), command[1:]...)   //nolint:gosec // of our list
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends in order
	// A Ctrl-C in our terminal reaches us alone: in the middle of an installation it would leave
	// packages that are half unpacked, which no later run mends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

var (
	errInterrupted = errors.New("interrupted")
	errNoMirror    = errors.New("no mirror answers")
)

// run shows now and then how far a command is, and that it goes on when the user's context ends.
func (h host) run(ctx, user context.Context, out io.Writer, m manager, command ...string) error {
	cmd := h.administrator(ctx, m, command...)
	p := showProgress(user, out, m.program, h.showEvery)
	cmd.Stdout, cmd.Stderr = p, p
	err := cmd.Run()
	p.end()
	switch printed := "\n" + p.printed.String(); {
	// An update that reached no mirror is a success to apt-get, which then tries each package.
	case err == nil && strings.Contains(printed, "\nErr:") && !strings.Contains(printed, "\nGet:") && !strings.Contains(printed, "\nHit:"):
		return why(m.program, p.printed.Bytes(), errNoMirror)
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return errInterrupted
	}
	return why(m.program, p.printed.Bytes(), err)
}

// mayInstall reports whether the package manager can be run without a password.
func (h host) mayInstall(ctx context.Context, m manager) bool {
	return h.isRoot || !m.asRoot || h.administrator(ctx, m, "true").Run() == nil
}
