package programs

import (
	"fmt"
	"slices"
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
}

const apt = "apt-get"

var managers = []manager{
	{
		apt, []string{"-q", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::https::Timeout=10", "-o", "Dpkg::Use-Pty=0"},
		[][]string{{"check"}, {"update"}, {"install", "-y", "--no-install-recommends"}}, // check tries the lock
		true, func(p packages) string { return p.apt },
	},
	{
		"dnf", []string{"--setopt=exit_on_lock=True", "--setopt=timeout=10"},
		[][]string{{"install", "-y"}}, true, func(p packages) string { return p.dnf },
	},
	{"pacman", nil, [][]string{{"-S", "--needed", "--noconfirm"}}, true, func(p packages) string { return p.pacman }},
	{"apk", nil, [][]string{{"add", "--no-cache"}}, true, func(p packages) string { return p.apk }},
	{"brew", nil, [][]string{{"install"}}, false, func(p packages) string { return p.brew }},
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
