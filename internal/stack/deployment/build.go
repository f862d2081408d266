package deployment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
	return t.End(strings.Join(d.programs(), ", "), d.build(ctx, t, env))
}

func (d *Deployment) build(ctx context.Context, t Step, env []string) error {
	// No -trimpath: what `go run ./cmd/stack` has compiled is not compiled again.
	// -v: the programs' packages are named as they are compiled.
	// -buildvcs=false: a commit that changes nothing in a program must not restart it.
	args := []string{"build", "-v", "-buildvcs=false", "-ldflags=-s -w", "-tags=" + d.BuildTags, "-o", d.BinDir() + string(filepath.Separator)}
	for _, name := range d.programs() {
		args = append(args, "./cmd/"+name)
	}
	progress := &buildProgress{step: t, told: t.begun}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = d.Root, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = progress, progress
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command is not on PATH")
	}
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", errors.Join(err, ctx.Err()), progress.complaints.String())
	}
	return nil
}

// buildProgress reads what `go build -v` prints: a line for each module that is downloaded and for
// each package that is compiled. It prints how many there were, every slowStep.
type buildProgress struct {
	step              Step
	told              time.Time
	line              bytes.Buffer
	modules, packages int
	// complaints are all other lines.
	complaints strings.Builder
}

func (p *buildProgress) Write(printed []byte) (int, error) {
	for _, b := range printed {
		p.line.WriteByte(b)
		if b == '\n' {
			p.read(p.line.String())
			p.line.Reset()
		}
	}
	return len(printed), nil
}

func (p *buildProgress) read(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.modules++
	case !strings.Contains(line, " "):
		p.packages++
	default:
		p.complaints.WriteString(line)
	}
	if time.Since(p.told) >= slowStep {
		p.told = time.Now()
		p.step.Going(fmt.Sprintf("%d modules downloaded, %d packages compiled", p.modules, p.packages))
	}
}
