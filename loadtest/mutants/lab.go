package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// portsApart is enough between two stacks: no two services are that close.
const portsApart = 200

// lab is where mutants are tried: copies of one commit in a temporary folder, and its campaign for
// all of them.
type lab struct {
	cfg      config
	out      io.Writer
	commit   string // HEAD when it was opened
	dir      string
	campaign string   // the program
	slots    chan int // the port offsets that are free

	mu sync.Mutex // guards out
}

func openLab(ctx context.Context, cfg config, out io.Writer) (l *lab, err error) {
	l = &lab{cfg: cfg, out: out, slots: make(chan int, cfg.SideBySide)}
	for i := range cfg.SideBySide {
		l.slots <- cfg.Offset + i*portsApart
	}
	if l.cfg.Out, err = filepath.Abs(cfg.Out); err != nil {
		return nil, err
	}
	commit, err := command(ctx, ".", "", "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return nil, err
	}
	l.commit = strings.TrimSpace(commit)
	if l.dir, err = os.MkdirTemp("", "oncepay-mutants-"); err != nil {
		return nil, err
	}
	if err := l.buildCampaign(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// buildCampaign builds it from the commit as it is: no mutant verifies itself.
func (l *lab) buildCampaign(ctx context.Context) error {
	l.say("building the campaign of %s", l.commit)
	head, err := l.tree(ctx, mutant{Name: "head"})
	if err != nil {
		return err
	}
	l.campaign = filepath.Join(l.dir, "campaign")
	_, err = command(ctx, head, "", "go", "build", "-o", l.campaign, "./loadtest/faults")
	return err
}

func (l *lab) close() { _ = os.RemoveAll(l.dir) }

// say prints a line of progress. It may be called from any goroutine.
func (l *lab) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// tryAll tries the controls and all mutants, some at a time, and returns the results in this order.
func (l *lab) tryAll(ctx context.Context, mutants []mutant) []result {
	subjects := append(controls(mutants), mutants...)
	results := make([]result, len(subjects))
	var group sync.WaitGroup
	for i, m := range subjects {
		offset := <-l.slots
		group.Go(func() {
			defer func() { l.slots <- offset }()
			if ctx.Err() == nil {
				results[i] = l.try(ctx, m, offset)
			}
		})
	}
	group.Wait()
	return results
}

// tree copies the commit and applies the mutant's patch.
func (l *lab) tree(ctx context.Context, m mutant) (dir string, err error) {
	dir = filepath.Join(l.dir, m.Name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, err
	}
	archive, err := command(ctx, ".", "", "git", "archive", "--format=tar", l.commit)
	if err != nil {
		return dir, err
	}
	if _, err = command(ctx, dir, archive, "tar", "-x"); err != nil || m.Patch == "" {
		return dir, err
	}
	if _, err = command(ctx, dir, m.Patch, "git", "apply"); err != nil {
		return dir, fmt.Errorf("%w: %w", errNotApplied, err)
	}
	// As the stack builds, which then finds all but the linking done.
	if _, err = command(ctx, dir, "", "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-tags=failpoints", "./cmd/oncepay", "./cmd/pspsim"); err != nil {
		return dir, fmt.Errorf("%w: %w", errNotCompiled, err)
	}
	return dir, nil
}

// command runs a program to its end, with something to read, and returns what it printed, which is
// also in its error.
func command(ctx context.Context, dir, input, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, args[0], err, printed)
	}
	return string(printed), nil
}
