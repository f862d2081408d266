package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Oncepay is the service's program.
const Oncepay = "oncepay"

// programs are ours that this stack needs.
func (d *Deployment) programs() []string {
	list := []string{Oncepay, "pspsim", "stack"}
	if d.Console {
		list = append(list, topology.Console)
	}
	return list
}

// BinDir is the folder of our programs.
func (d *Deployment) BinDir() string { return filepath.Join(d.Dir, "bin") }

// Program is the path of one of our programs.
func (d *Deployment) Program(name string) string { return filepath.Join(d.BinDir(), name) }

// OncepayOf is the path of the program that a replica runs, or, by the name Oncepay, of commands.
func (d *Deployment) OncepayOf(name string) string {
	return cmp.Or(d.State.Data.Programs[name], d.Program(Oncepay))
}

// Build compiles our programs, with these variables added to the environment.
func (d *Deployment) Build(ctx context.Context, env ...string) error {
	t := d.Step("build", "")
	// No -trimpath: what `go run ./cmd/stack` has compiled is not compiled again.
	// -buildvcs=false: a commit that changes nothing in a program must not restart it.
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-tags=" + d.BuildTags, "-o", d.BinDir() + string(filepath.Separator)}
	for _, name := range d.programs() {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = d.Root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("the go command is not on PATH")
	case err != nil:
		err = fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return t.End(strings.Join(d.programs(), ", "), err)
}
