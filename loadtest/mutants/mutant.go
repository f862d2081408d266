package main

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a patch that takes a safeguard out.
type mutant struct {
	Name    string
	Removes string
	Faults  string // kinds, as the campaign takes them
	Env     string // further variables of the campaign, with spaces between
	Patch   string // its file; nothing in a control
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

// readMutants reads the patches, which are called as 07-redis-scope.patch, in the order of their
// numbers; only, if there are any, says which by name.
func readMutants(dir string, only []string) (mutants []mutant, err error) {
	dir, err = filepath.Abs(dir)
	files, _ := filepath.Glob(filepath.Join(dir, "[0-9][0-9]-*.patch"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("no patches in %s: run this in the repository's root", dir), err)
	}
	unknown := slices.Clone(only)
	for _, file := range files {
		m, err := readMutant(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(only) == 0 || slices.Contains(only, m.Name) {
			mutants = append(mutants, m)
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == m.Name })
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("there is no mutant called %q", unknown[0])
	}
	return mutants, nil
}

// readMutant reads a patch, whose header is like that of a mail.
func readMutant(path string) (mutant, error) {
	patch, err := os.Open(path)
	if err != nil {
		return mutant{}, err
	}
	defer func() { _ = patch.Close() }()
	mail, err := mail.ReadMessage(patch)
	if err != nil {
		return mutant{}, err
	}
	for _, field := range []string{"Removes", "Breaks", "Faults"} {
		if mail.Header.Get(field) == "" {
			return mutant{}, errors.New("its header must say Removes, Breaks and Faults")
		}
	}
	name := strings.TrimSuffix(filepath.Base(path), ".patch")[len("07-"):]
	return mutant{name, mail.Header.Get("Removes"), mail.Header.Get("Faults"), mail.Header.Get("Env"), path}, nil
}
