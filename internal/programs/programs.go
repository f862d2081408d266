// Package programs has the one list of the programs that oncepay's commands run: what each is for,
// from which version it will do, and its package in each system. It finds them on this machine, and
// installs those that are missing. It imports the standard library alone and compiles without a C
// compiler, because it runs before anything else is compiled.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
	// probe are arguments with which it has to succeed; nil: nobody asks. The first number that it
	// then prints is its major version.
	probe    []string
	packages packages
	// service is what Debian's package would start at boot.
	service string
}

// errTooOld says that a program is there, and of no use.
var errTooOld = errors.New("too old")

// Find returns the path of the program on this machine. The error says which one is needed and what
// was found instead.
func (p *Program) Find() (string, error) { return p.findIn(thisHost().dirs) }

func (p *Program) findIn(dirs []string) (string, error) {
	lack := fmt.Errorf("%s is not installed", p.needed())
	for _, path := range p.candidates(dirs) {
		major, ok := p.version(path)
		if ok && major >= p.Oldest {
			return path, nil
		}
		if ok && !errors.Is(lack, errTooOld) {
			lack = fmt.Errorf("%s is needed, and %s is version %d, which is %w", p.needed(), path, major, errTooOld)
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

// candidates are all files that may be the program.
func (p *Program) candidates(dirs []string) (paths []string) {
	for _, file := range p.files {
		folders := dirs
		if filepath.IsAbs(file) {
			folders = []string{""}
		}
		for _, dir := range folders {
			found, _ := filepath.Glob(filepath.Join(dir, file))
			slices.Reverse(found) // the newest first
			paths = append(paths, found...)
		}
	}
	return paths
}

var wholeVersion = regexp.MustCompile(`\d+(\.\d+)+`)

// Versions are those of Go and of the programs that a native stack runs, and the kind of machine.
// What is not there has none.
func Versions(ctx context.Context) string {
	text := runtime.Version()
	for _, p := range []*Program{PostgreSQL, Redis, Nginx} {
		path, _ := p.Find()
		printed, _ := exec.CommandContext(ctx, path, p.probe...).CombinedOutput() //nolint:gosec // a program of our list
		text += fmt.Sprintf(", %s %s", p.Name, wholeVersion.FindString(string(printed)))
	}
	return fmt.Sprintf("%s, %s/%s, %d CPUs", text, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

var firstNumber = regexp.MustCompile(`\d+`)

// version returns 0 if nobody asks for it. It reports whether the program works.
func (p *Program) version(path string) (major int, ok bool) {
	if _, err := exec.LookPath(path); err != nil || p.probe == nil { // it may not be executed
		return 0, err == nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, p.probe...) //nolint:gosec // a program of our list
	cmd.WaitDelay = time.Second                       // what it has started may hold its output
	printed, err := cmd.Output()
	major, _ = strconv.Atoi(firstNumber.FindString(string(printed)))
	return major, err == nil
}
