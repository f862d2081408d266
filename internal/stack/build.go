package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Oncepay is the service's program.
const Oncepay = "oncepay"

// ourPrograms are those that a stack needs.
var ourPrograms = []string{Oncepay, "pspsim", "stack"}

func (s *Stack) binDir() string { return filepath.Join(s.Dir, "bin") }

// Program is the path of one of our programs.
func (s *Stack) Program(name string) string { return filepath.Join(s.binDir(), name) }

// oncepayOf is the path of the program that a replica runs, or, by the name Oncepay, of commands.
func (s *Stack) oncepayOf(name string) string {
	return cmp.Or(s.state.Programs[name], s.Program(Oncepay))
}

// build compiles our programs, with these variables added to the environment.
func (s *Stack) build(ctx context.Context, env ...string) error {
	return s.step("build", "", func() (string, error) {
		// No -trimpath: what `go run ./cmd/stack` has compiled is not compiled again.
		// -buildvcs=false: a commit that changes nothing in a program must not restart it.
		args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-tags=" + s.options.BuildTags, "-o", s.binDir() + string(filepath.Separator)}
		for _, name := range ourPrograms {
			args = append(args, "./cmd/"+name)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = s.root, append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), out)
		}
		return strings.Join(ourPrograms, ", "), nil
	})
}
