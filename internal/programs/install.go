package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// installTimeout bounds an installation: some 300 MB on a slow line.
const installTimeout = 30 * time.Minute

// Ensure returns when this machine has the programs that tasks run. It writes to out which ones are
// missing, installs them, and shows the progress. With noInstall, and where it may not install, it
// changes nothing: the error then has a command to paste.
func Ensure(ctx context.Context, out io.Writer, noInstall bool, tasks ...string) error {
	return thisHost().ensure(ctx, out, noInstall, Needs(tasks...))
}

func (h host) ensure(ctx context.Context, out io.Writer, noInstall bool, needed []*Program) error {
	missing, tooOld := h.lacking(needed)
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprint(out, "missing on this machine:\n")
	for _, p := range missing {
		fmt.Fprintf(out, "  %-30s %s\n", p.needed(), p.Use)
	}
	m, err := h.installer(ctx, missing, tooOld, noInstall)
	if err != nil {
		return fmt.Errorf("%w:%s", err, h.paste(missing))
	}
	names, _ := m.packages(missing)
	fmt.Fprintf(out, "installing with %s: %s\n", m.program, strings.Join(names, " "))
	if err := h.install(ctx, out, m, missing, names); err != nil {
		return err
	}
	if _, err := h.lacking(missing); err != nil {
		return fmt.Errorf("the packages of this system are too old: %w", err)
	}
	if missing, _ := h.lacking(missing); missing != nil {
		return fmt.Errorf("%s has installed its package, and there is no %s", m.program, missing[0].Name)
	}
	return nil
}

// lacking are the programs that are absent or too old. The error names those that are too old.
func (h host) lacking(programs []*Program) (missing []*Program, tooOld error) {
	for _, p := range programs {
		_, err := p.findIn(h.dirs)
		if err == nil {
			continue
		}
		missing = append(missing, p)
		if _, ok := errors.AsType[tooOldError](err); ok {
			tooOld = errors.Join(tooOld, err)
		}
	}
	return missing, tooOld
}

// installer is the package manager, if it may install what is missing; otherwise the error says why
// not, in words that a command to paste follows.
func (h host) installer(ctx context.Context, missing []*Program, tooOld error, noInstall bool) (manager, error) {
	m, ok := h.manager()
	if !ok {
		return m, errors.New("there is no package manager that we know; the commands of those that we know are")
	}
	switch _, nameless := m.packages(missing); {
	case tooOld != nil:
		return m, fmt.Errorf("%w; update it, or install a later one", tooOld)
	case noInstall:
		return m, errors.New("install them with")
	case nameless != nil:
		return m, fmt.Errorf("%s has no package of %s; it installs the others with", m.program, strings.Join(nameless, ", "))
	case !h.mayInstall(ctx, m):
		return m, errors.New("installing them needs root, or sudo without a password; an administrator installs them with")
	}
	return m, checkDisk(missing)
}

// checkDisk refuses to fill the disk.
func checkDisk(missing []*Program) error {
	needed := 100 // the package lists
	for _, p := range missing {
		needed += p.megabytes
	}
	for _, dir := range []string{"/usr", "/var"} {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil {
			return fmt.Errorf("look at the free space of %s: %w", dir, err)
		}
		if free := int(fs.Bavail * uint64(fs.Bsize) >> 20); free < needed { //nolint:gosec // a block has a positive size
			return fmt.Errorf("the disk is full: %s has %d MB left, and installing takes %d MB; make room, and install them with", dir, free, needed)
		}
	}
	return nil
}

// install leaves no service running that the packages bring along. Once packages are being
// installed it goes on to their end, also if it is interrupted.
func (h host) install(ctx context.Context, out io.Writer, m manager, programs []*Program, packages []string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	step := func(ctx, interrupted context.Context, step []string, packages ...string) error {
		return h.run(ctx, interrupted, out, m, slices.Concat([]string{m.program}, m.options, step, packages)...)
	}
	last := len(m.steps) - 1
	for _, before := range m.steps[:last] {
		if err := step(ctx, context.Background(), before); err != nil {
			return err
		}
	}
	for _, p := range programs {
		if err := h.tooOld(ctx, m, p); err != nil {
			return err
		}
	}
	enabled := enabledUnits(ctx)
	undo, err := h.forbidServices(ctx, m)
	if err != nil {
		return err
	}
	defer undo()
	interrupted := ctx
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), installTimeout)
	defer cancel()
	if err := step(ctx, interrupted, m.steps[last], packages...); err != nil {
		return err
	}
	if err := h.disableNewUnits(ctx, out, m, enabled); err != nil {
		return err
	}
	if interrupted.Err() != nil {
		return errInterrupted
	}
	return nil
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

// why says in one sentence why a package manager has failed.
func why(program string, printed []byte, err error) error {
	for _, r := range reasons {
		if line := r.printed.Find(printed); line != nil {
			return fmt.Errorf("%s (%s: %s)", r.sentence, program, bytes.TrimSpace(line))
		}
	}
	lines := bytes.Split(bytes.TrimSpace(printed), []byte("\n"))
	return fmt.Errorf("%s: %w\n%s", program, err, bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}
