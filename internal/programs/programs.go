// Package programs has the one list of the programs that oncepay's commands run: what each is for,
// from which version it will do, and its package in each system. It finds them on this machine, and
// installs those that are missing. It imports the standard library alone and compiles without a C
// compiler, because it runs before anything else is compiled.
package programs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// probeTimeout bounds the question for a program's version.
const probeTimeout = 10 * time.Second

// Program is one that must be on this machine. All fields are read only.
type Program struct {
	Name string
	// Use says what it is for.
	Use string
	// Oldest is the oldest major version that will do; 0: any.
	Oldest int

	// files are names on the PATH, or patterns of paths; any of them will do.
	files []string
	// probe are arguments with which it has to succeed. nil: version if there is an Oldest.
	probe []string
	// megabytes is what it takes on a bare Debian, with its packages' archives.
	megabytes int
	packages  packages
}

// packages are a program's names in each system, separated by spaces; empty: it has none there.
type packages struct{ apt, dnf, pacman, apk, brew string }

// Find returns the path of the program on this machine. The error says which one is needed and what
// was found instead.
func (p *Program) Find() (string, error) { return p.findIn(thisHost().dirs) }

func (p *Program) findIn(dirs []string) (string, error) {
	lack := lackError{Program: p}
	for _, path := range p.candidates(dirs) {
		found, ok := p.version(path)
		if ok && found >= p.Oldest {
			return path, nil
		}
		if ok && lack.tooOld == "" {
			lack.tooOld, lack.found = path, found
		}
	}
	return "", lack
}

// needed is the program with the version that is needed.
func (p *Program) needed() string {
	if p.Oldest == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s %d or later", p.Name, p.Oldest)
}

// lackError says that a program is absent, or too old.
type lackError struct {
	*Program
	tooOld string // path; empty: absent
	found  int
}

func (e lackError) Error() string {
	if e.tooOld == "" {
		return e.needed() + " is not installed"
	}
	return fmt.Sprintf("%s is needed, and %s is version %d", e.needed(), e.tooOld, e.found)
}

// candidates are all files that may be the program.
func (p *Program) candidates(dirs []string) (paths []string) {
	for _, file := range p.files {
		found, _ := filepath.Glob(file) // the pattern of a path
		slices.Reverse(found)           // the newest first
		if !filepath.IsAbs(file) {
			found = nil
			for _, dir := range dirs {
				found = append(found, filepath.Join(dir, file))
			}
		}
		for _, path := range found {
			if _, err := exec.LookPath(path); err == nil { // it may be executed
				paths = append(paths, path)
			}
		}
	}
	return paths
}

var firstNumber = regexp.MustCompile(`\d+`)

// version is the first number that the program prints, or 0 if nobody asks for it. It reports
// whether the program works.
func (p *Program) version(path string) (major int, ok bool) {
	probe := p.probe
	if p.Oldest > 0 {
		probe = version
	}
	if probe == nil {
		return 0, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, probe...) //nolint:gosec // a program of our list
	cmd.WaitDelay = time.Second                     // what it has started may hold its output
	printed, err := cmd.Output()
	major, _ = strconv.Atoi(firstNumber.FindString(string(printed)))
	return major, err == nil
}
