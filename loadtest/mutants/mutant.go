package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is a patch that takes a safeguard out.
type mutant struct {
	Name    string
	Removes string
	Breaks  string // the promise
	Faults  string // kinds, as the campaign takes them
	Env     string // further variables of the campaign, with spaces between
	Patch   string // nothing in a control
}

// controls are the tree as it is, under the faults of all mutants: one for each kind of stack that
// they need.
func controls(mutants []mutant) (all []mutant) {
	faults := map[string][]string{}
	for _, m := range mutants {
		faults[m.stack()] = append(faults[m.stack()], strings.Split(m.Faults, ",")...)
	}
	for _, stack := range slices.Sorted(maps.Keys(faults)) {
		kinds := slices.Compact(slices.Sorted(slices.Values(faults[stack])))
		name := strings.TrimSuffix("control "+stack, " ")
		all = append(all, mutant{Name: name, Removes: "nothing", Faults: strings.Join(kinds, ","), Env: stack})
	}
	return all
}

// stack is the part of Env that says of which kind the stack is.
func (m mutant) stack() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(m.Env), func(pair string) bool {
		return !strings.HasPrefix(pair, "REDIS=") && !strings.HasPrefix(pair, "POSTGRES=")
	}), " ")
}

// fileName is 07-redis-scope.patch.
var fileName = regexp.MustCompile(`^\d\d-([0-9a-z-]+)\.patch$`)

// readMutants reads the patches in the order of their numbers; only, if there are any, says which
// by name.
func readMutants(dir string, only []string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("no patches in %s: run this in the repository's root", dir), err)
	}
	var mutants []mutant
	for _, file := range files {
		m, err := readMutant(file)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(only, m.Name); len(only) == 0 || i >= 0 {
			mutants = append(mutants, m)
		}
	}
	for _, name := range only {
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.Name == name }) {
			return nil, fmt.Errorf("there is no mutant called %q", name)
		}
	}
	return mutants, nil
}

// readMutant reads a patch's header: what stands before its first file, as "Name: value".
func readMutant(path string) (mutant, error) {
	name := fileName.FindStringSubmatch(filepath.Base(path))
	if name == nil {
		return mutant{}, fmt.Errorf("%s: a patch is called NN-name.patch", path)
	}
	patch, err := os.ReadFile(path)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{Name: name[1], Patch: string(patch)}
	fields := map[string]*string{"Removes": &m.Removes, "Breaks": &m.Breaks, "Faults": &m.Faults, "Env": &m.Env}
	header, _, _ := strings.Cut(m.Patch, "\ndiff ")
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if field := fields[name]; field != nil {
			*field = value
		}
	}
	if m.Removes == "" || m.Breaks == "" || m.Faults == "" {
		return mutant{}, fmt.Errorf("%s: its header must say Removes, Breaks and Faults", path)
	}
	return m, nil
}
