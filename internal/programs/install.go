package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// manager is a package manager.
type manager struct {
	program string
	// install is a command that package names follow.
	install string
	asRoot  bool
}

var managers = [...]manager{
	{"apt-get", "apt-get update && apt-get install -y --no-install-recommends", true},
	{"dnf", "dnf install -y", true},
	{"pacman", "pacman -S --needed --noconfirm", true},
	{"apk", "apk add --no-cache", true},
	{"brew", "brew install", false},
}

// quietly installs Debian's packages without starting a service, now or at boot. Their scripts ask
// the policy whether they may (invoke-rc.d(8)); a machine's own one stays.
const quietly = `policy=%q
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
fi
%s && { for service in %s; do systemctl disable $service; done >/dev/null 2>&1 || true; }`

// host is where programs are looked for and installed.
type host struct {
	dirs   []string // of programs
	isRoot bool
	policy string // the file's path
}

func thisHost() host {
	// Debian's servers are in /usr/sbin, which is not on everybody's PATH.
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin", "/sbin")
	return host{dirs, os.Geteuid() == 0, "/usr/sbin/policy-rc.d"}
}

// Ensure returns when this machine has the programs that tasks run. It writes to out which ones are
// missing, and what the package manager says while it installs them. With noInstall, and where it
// may not install, it changes nothing. Every error of it has the command to paste.
func Ensure(ctx context.Context, out io.Writer, noInstall bool, tasks ...string) error {
	return thisHost().ensure(ctx, out, noInstall, Needs(tasks...))
}

func (h host) ensure(ctx context.Context, out io.Writer, noInstall bool, needed []*Program) error {
	missing, lack := h.lacking(needed)
	if lack == nil {
		return nil
	}
	fmt.Fprint(out, "missing on this machine:\n")
	for _, p := range missing {
		fmt.Fprintf(out, "  %-30s %s\n", p.needed(), p.Use)
	}
	system := slices.IndexFunc(managers[:], func(m manager) bool { return h.find(m.program) != "" })
	if system >= 0 && !noInstall && !errors.Is(lack, errTooOld) {
		if lack = h.install(out, missing, system); lack == nil {
			_, lack = h.lacking(missing)
		}
	}
	if lack != nil {
		return fmt.Errorf("%w; install them with:%s", lack, h.paste(missing, system))
	}
	return ctx.Err()
}

// lacking are the programs that are absent or too old.
func (h host) lacking(programs []*Program) (missing []*Program, lack error) {
	for _, p := range programs {
		if _, err := p.findIn(h.dirs); err != nil {
			missing, lack = append(missing, p), errors.Join(lack, err)
		}
	}
	return missing, lack
}

// find returns the path of a program, or "".
func (h host) find(name string) string {
	path, _ := (&Program{files: []string{name}}).findIn(h.dirs)
	return path
}

// names are the packages of programs, and the programs that have none in a system.
func names(programs []*Program, system int) (packages, nameless string) {
	for _, p := range programs {
		if p.packages[system] == "" {
			nameless += " " + p.Name
		} else {
			packages += " " + p.packages[system]
		}
	}
	return packages, nameless
}

// paste is the command for a user's terminal: in this system, or in each that we know (-1).
func (h host) paste(missing []*Program, system int) (lines string) {
	for i, m := range managers {
		if system >= 0 && i != system {
			continue
		}
		packages, nameless := names(missing, i)
		if m.asRoot && !h.isRoot {
			m.install = strings.ReplaceAll(m.install, m.program+" ", "sudo "+m.program+" ")
		}
		lines += "\n  " + m.install + packages
		if nameless != "" {
			lines += "   # it has no" + nameless
		}
	}
	return lines
}

// install goes on to its end, also if the user interrupts: packages that are half unpacked would
// stay so.
func (h host) install(out io.Writer, missing []*Program, system int) error {
	m := managers[system]
	packages, nameless := names(missing, system)
	if nameless != "" {
		return fmt.Errorf("%s has no package of%s", m.program, nameless)
	}
	script := m.install + packages
	fmt.Fprintf(out, "installing, to the end even if interrupted: %s\n", script)
	if m.program == "apt-get" {
		var services string
		for _, p := range missing {
			services += " " + p.service
		}
		script = fmt.Sprintf(quietly, h.policy, script, services)
	}
	path := "PATH=" + strings.Join(h.dirs, string(filepath.ListSeparator))
	command := []string{"env", path, "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script}
	if m.asRoot && !h.isRoot {
		command = slices.Concat([]string{"sudo", "-n"}, command) // -n: nobody is there to type a password
	}
	//nolint:gosec,noctx // of our list; to its end
	cmd := exec.Command(cmp.Or(h.find(command[0]), command[0]), command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C in our terminal reaches us alone
	cmd.Stdout = struct{ io.Writer }{out}                 // no terminal, for which it would draw bars
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s has failed (%w)", m.program, err)
	}
	return nil
}
