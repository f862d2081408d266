package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

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

// output keeps what a command prints. It is safe for concurrent use.
type output struct {
	mu      sync.Mutex
	printed []byte
}

func (o *output) Write(printed []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.printed = append(o.printed, printed...)
	return len(printed), nil
}

// lines are the last ones.
func (o *output) lines(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := bytes.Split(bytes.TrimSpace(o.printed), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-n):], []byte("\n")))
}

var (
	errInterrupted = errors.New("interrupted")
	errNoMirror    = errors.New("no mirror answers")
)

// run shows now and then how far a command is, and that it goes on when the user's context ends and
// its own does not.
func (h host) run(ctx, user context.Context, out io.Writer, m manager, command ...string) error {
	cmd := h.administrator(ctx, m, command...)
	var printed output
	cmd.Stdout, cmd.Stderr = &printed, &printed
	begun, ended := time.Now(), make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	ticks := time.NewTicker(h.showEvery)
	defer ticks.Stop()
	interrupted := user.Done()
	tell := func() {
		if interrupted = nil; ctx.Err() == nil {
			fmt.Fprintln(out, "  interrupted: what is being installed is installed to its end")
		}
	}
	for {
		select {
		case <-interrupted:
			tell()
		case <-ticks.C:
			fmt.Fprintf(out, "  %s … %2.0f s  %.90s\n", m.program, time.Since(begun).Seconds(), printed.lines(1))
		case err := <-ended:
			if interrupted != nil && user.Err() != nil {
				tell()
			}
			if errors.Is(ctx.Err(), context.Canceled) {
				return errInterrupted
			}
			return why(m.program, &printed, err)
		}
	}
}

// reasons are the sentences for what package managers print when they fail, the first that fits.
var reasons = []struct {
	printed  *regexp.Regexp
	sentence string
}{
	{regexp.MustCompile(`(?i).*(no space left|enough free space).*`), "the disk is full"},
	{
		regexp.MustCompile(`(?i).*(could not get lock|unable to (acquire|lock)|failed to obtain.* lock|already locked|another process|waiting for process).*`),
		"the package manager is busy; try again when the other one has ended",
	},
	{regexp.MustCompile(`(?i).*(permission denied|password is required|are you root).*`), "no right to install"},
	{regexp.MustCompile(`(?i).*(returned an error code|was interrupted).*`), "a package could not be installed"},
	{
		regexp.MustCompile(`(?i).*(could ?n[o']t (resolve|connect)|unable to connect|failure resolving|timed out|unable to locate|failed to (fetch|download)|does not have a release|cannot (download|initiate)|network is unreachable|temporary error).*`),
		"no package could be fetched; is there a network?",
	},
}

var (
	mirrorFailed   = regexp.MustCompile(`(?m)^Err:`)
	mirrorAnswered = regexp.MustCompile(`(?m)^(Get|Hit):`)
)

// why says in one sentence why a package manager has failed, if it has. An update that reached no
// mirror is a success to apt-get, which then tries each package.
func why(program string, o *output, err error) error {
	if err == nil && mirrorFailed.Match(o.printed) && !mirrorAnswered.Match(o.printed) {
		err = errNoMirror
	}
	if err == nil {
		return nil
	}
	for _, r := range reasons {
		if line := r.printed.Find(o.printed); line != nil {
			return fmt.Errorf("%s (%s: %s)", r.sentence, program, bytes.TrimSpace(line))
		}
	}
	return fmt.Errorf("%s: %w\n%s", program, err, o.lines(8))
}
