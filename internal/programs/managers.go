package programs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// manager is a package manager.
type manager struct {
	program string
	// options make it give up soon, on a lock or on a mirror that does not answer.
	options []string
	// steps of an installation; the packages follow the last one.
	steps  [][]string
	asRoot bool
	name   func(packages) string
	// policy prints the version of a package that would be installed, as apt-cache(8) does; nil:
	// the system follows the newest releases, or the version is in the package's name.
	policy []string
}

var managers = []manager{
	{
		"apt-get", []string{"-q", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10", "-o", "Dpkg::Use-Pty=0"},
		[][]string{{"check"}, {"update"}, {"install", "-y", "--no-install-recommends"}}, // check tries the lock
		true, func(p packages) string { return p.apt },
		[]string{"apt-cache", "policy"},
	},
	{
		"dnf", []string{"--setopt=exit_on_lock=True", "--setopt=timeout=10"},
		[][]string{{"install", "-y"}}, true, func(p packages) string { return p.dnf }, nil,
	},
	{"pacman", nil, [][]string{{"-S", "--needed", "--noconfirm"}}, true, func(p packages) string { return p.pacman }, nil},
	{"apk", nil, [][]string{{"add", "--no-cache"}}, true, func(p packages) string { return p.apk }, nil},
	{"brew", nil, [][]string{{"install"}}, false, func(p packages) string { return p.brew }, nil},
}

// packages are the names of programs, and the programs that have none.
func (m manager) packages(programs []*Program) (names, nameless []string) {
	for _, p := range programs {
		found := strings.Fields(m.name(p.packages))
		if len(found) == 0 {
			nameless = append(nameless, p.Name)
		}
		names = append(names, found...)
	}
	return names, nameless
}

// candidate is the major version that the manager would install, without Debian's epoch.
var candidate = regexp.MustCompile(`Candidate: (?:\d+:)?(\d+)`)

// tooOld returns an error if the manager would install a version of p that is too old. What it
// cannot find out is seen after the installation.
func (h host) tooOld(ctx context.Context, m manager, p *Program) error {
	if p.Oldest == 0 || m.policy == nil {
		return nil
	}
	name, _, _ := strings.Cut(m.name(p.packages), " ")
	printed, _ := h.administrator(ctx, m, slices.Concat(m.policy, []string{name})...).Output()
	if found := candidate.FindSubmatch(printed); found != nil {
		if major, _ := strconv.Atoi(string(found[1])); major < p.Oldest {
			return fmt.Errorf("the packages of this system are too old: %s is needed, and %s has version %d", p.needed(), m.program, major)
		}
	}
	return nil
}

// paste is a command for a user's terminal that installs programs.
func (m manager) paste(programs []*Program, isRoot bool) string {
	names, nameless := m.packages(programs)
	var commands []string
	for i, step := range m.steps {
		if step[0] == "check" {
			continue
		}
		command := slices.Concat([]string{m.program}, step)
		if i == len(m.steps)-1 {
			command = append(command, names...)
		}
		if m.asRoot && !isRoot {
			command = slices.Insert(command, 0, "sudo")
		}
		commands = append(commands, strings.Join(command, " "))
	}
	line := strings.Join(commands, " && ")
	if nameless != nil {
		line += fmt.Sprintf("   # it has no %s", strings.Join(nameless, ", "))
	}
	return line
}
