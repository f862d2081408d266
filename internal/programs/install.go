package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// installTimeout bounds an installation: some 300 MB on a slow line.
const installTimeout = 30 * time.Minute

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
	switch missing, tooOld := h.lacking(missing); {
	case tooOld != nil:
		return fmt.Errorf("the packages of this system are too old: %w", tooOld)
	case missing != nil:
		return fmt.Errorf("%s has installed its package, and there is no %s", m.program, missing[0].Name)
	}
	return nil
}

// lacking are the programs that are absent or too old. The error names those that are too old.
func (h host) lacking(programs []*Program) (missing []*Program, tooOld error) {
	for _, p := range programs {
		_, err := p.findIn(h.dirs)
		if lack, ok := errors.AsType[lackError](err); ok {
			missing = append(missing, p)
			if lack.tooOld != "" {
				tooOld = errors.Join(tooOld, err)
			}
		}
	}
	return missing, tooOld
}

// manager is the machine's package manager.
func (h host) manager() (m manager, ok bool) {
	i := slices.IndexFunc(managers, func(m manager) bool { return h.find(m.program) != "" })
	if i < 0 {
		return m, false
	}
	return managers[i], true
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
	case !h.isRoot && m.asRoot && h.administrator(ctx, m, "true").Run() != nil:
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
func (h host) install(user context.Context, out io.Writer, m manager, programs []*Program, packages []string) error {
	ctx, cancel := context.WithTimeout(user, installTimeout)
	defer cancel()
	run := func(ctx context.Context, step []string, packages ...string) error {
		return h.run(ctx, user, out, m, slices.Concat([]string{m.program}, m.options, step, packages)...)
	}
	last := len(m.steps) - 1
	for _, step := range m.steps[:last] {
		if err := run(ctx, step); err != nil {
			return err
		}
	}
	for _, p := range programs {
		if err := h.tooOld(ctx, m, p); err != nil {
			return err
		}
	}
	enabled := enabledUnits(ctx)
	allow, err := h.forbidServices(ctx, m)
	if err != nil {
		return err
	}
	defer allow()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(user), installTimeout)
	defer cancel()
	if err := run(ctx, m.steps[last], packages...); err != nil {
		return err
	}
	for _, unit := range enabledUnits(ctx) {
		if !slices.Contains(enabled, unit) {
			if err := h.run(ctx, context.Background(), out, m, "systemctl", "disable", "--now", unit); err != nil {
				return err
			}
		}
	}
	if user.Err() != nil {
		return errInterrupted
	}
	return nil
}

// candidate is the major version that apt would install, without Debian's epoch.
var candidate = regexp.MustCompile(`Candidate: (?:\d+:)?(\d+)`)

// tooOld returns an error if apt would install a version of p that is too old. Other systems follow
// the newest releases, or the version is in the package's name.
func (h host) tooOld(ctx context.Context, m manager, p *Program) error {
	if p.Oldest == 0 || m.program != apt {
		return nil
	}
	printed, _ := h.administrator(ctx, m, "apt-cache", "policy", strings.Fields(p.packages.apt)[0]).Output()
	if found := candidate.FindSubmatch(printed); found != nil {
		if major, _ := strconv.Atoi(string(found[1])); major < p.Oldest {
			return fmt.Errorf("the packages of this system are too old: %s is needed, and %s has version %d", p.needed(), m.program, major)
		}
	}
	return nil
}

// forbidServices makes Debian's packages install without starting anything, unless the machine has
// such a rule already.
func (h host) forbidServices(ctx context.Context, m manager) (allow func(), err error) {
	if _, err := os.Stat(h.policy); err == nil || m.program != apt {
		return func() {}, nil
	}
	script := `printf '#!/bin/sh\nexit 101\n' >` + h.policy + " && chmod 755 " + h.policy
	if out, err := h.administrator(ctx, m, "sh", "-c", script).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("forbid packages to start services: %w: %s", err, out)
	}
	return func() { _ = h.administrator(context.WithoutCancel(ctx), m, "rm", "-f", h.policy).Run() }, nil
}

// enabledUnits lists the systemd units of such packages that start at boot; none without systemd.
func enabledUnits(ctx context.Context) (units []string) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil
	}
	out, _ := exec.CommandContext(ctx, "systemctl", "list-unit-files", "--no-legend", "--state=enabled",
		"postgresql*.service", "redis*.service", "valkey*.service", "nginx.service").Output()
	for line := range strings.Lines(string(out)) {
		unit, _, _ := strings.Cut(line, " ")
		units = append(units, unit)
	}
	return units
}
