package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const (
	// sideBySide is how many campaigns run at a time, the first of them with the ports from
	// firstPort on. No two services of a stack are as close as portsApart.
	sideBySide, firstPort, portsApart = 2, 7900, 200
	// firstRound and longestRound bound a campaign's faults; each is three times as long as the one
	// before. A mutant that was not caught after the limit has survived.
	firstRound, longestRound, limit = 15 * time.Second, 3 * time.Minute, 10 * time.Minute
	// controlRound is for each kind of fault: enough for all of them to come.
	controlRound = 7 * time.Second
	// verdictTime is longer than a campaign takes besides its faults, also where a mutant blocks
	// keys and each of a client's requests waits to its end.
	verdictTime = 9 * time.Minute
	// maxMishaps is how often a campaign may break off before a mutant is given up.
	maxMishaps = 3
	// takeDownTime is what a campaign gets to take its stack down after Ctrl-C.
	takeDownTime = 90 * time.Second
)

// lab is where mutants are tried: copies of one commit in a temporary folder, and its campaign for
// all of them.
type lab struct {
	*log.Logger

	commit   string // HEAD when it was opened
	dir, out string
	campaign string // the program
}

// openLab builds the campaign from the commit as it is: no mutant verifies itself.
func openLab(ctx context.Context, progress *log.Logger) (*lab, error) {
	commit, err := command(ctx, ".", "", "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return nil, err
	}
	l := &lab{Logger: progress, commit: strings.TrimSpace(commit)}
	if l.out, err = filepath.Abs("loadtest/out/mutants"); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "oncepay-mutants-"); err != nil {
		return nil, err
	}
	l.campaign = filepath.Join(l.dir, "campaign")
	l.Printf("building the campaign of %s", l.commit)
	head, err := l.tree(ctx, mutant{Name: "head"})
	if err == nil {
		_, err = command(ctx, head, "", "go", "build", "-o", l.campaign, "./loadtest/faults")
	}
	if err != nil {
		_ = os.RemoveAll(l.dir)
	}
	return l, err
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
		return dir, fmt.Errorf("the patch does not apply any more: %w", err)
	}
	// As the stack builds, which then finds all but the linking done.
	_, err = command(ctx, dir, "", "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-tags=failpoints", "./cmd/oncepay", "./cmd/pspsim")
	return dir, err
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

// tryAll tries the controls and all mutants, some at a time, and returns the results in this order.
func (l *lab) tryAll(ctx context.Context, mutants []mutant) []result {
	subjects := append(controls(mutants), mutants...)
	results, next := make([]result, len(subjects)), make(chan int)
	var group sync.WaitGroup
	for slot := range sideBySide {
		group.Go(func() {
			for i := range next {
				results[i] = l.try(ctx, subjects[i], firstPort+slot*portsApart)
			}
		})
	}
	for i := range subjects {
		next <- i
	}
	close(next)
	group.Wait()
	return results
}

// result is what became of a mutant.
type result struct {
	mutant mutant
	broken []string      // the promises by which it was caught; none: it survived
	took   time.Duration // from the first campaign's beginning to the last one's verdict
	faults int           // that it took
	err    error         // it could not be tried
}

func (r result) caught() bool { return len(r.broken) > 0 && r.err == nil }

// try runs longer and longer campaigns on a mutant until it is caught or the limit has passed. The
// control has one campaign that reaches a verdict.
func (l *lab) try(ctx context.Context, m mutant, offset int) result {
	r, began, mishaps := result{mutant: m}, time.Now(), 0
	dir, err := l.tree(ctx, m)
	defer func() { _ = os.RemoveAll(dir) }()
	if err != nil {
		r.err = err
		l.Printf("%-26s %v", m.Name, err)
		return r
	}
	for duration, seed := firstRound, 1; ; duration, seed = min(3*duration, longestRound), seed+1 {
		if m.Patch == "" {
			duration = max(firstRound, controlRound*time.Duration(1+strings.Count(m.Faults, ",")))
		}
		l.Printf("%-26s %s of %s", m.Name, duration, m.Faults)
		found, err := l.campaignOn(ctx, m, dir, offset, duration, seed)
		r.took, r.broken, r.err = time.Since(began), found.broken(), err
		r.faults += found.Faults
		if err != nil {
			mishaps++
			l.Printf("%-26s %v", m.Name, err)
		}
		l.Printf("%-26s found %s after %s and %d faults", m.Name, cmp.Or(strings.Join(r.broken, "; "), "nothing"), r.took.Round(time.Second), r.faults)
		done := r.caught() || ctx.Err() != nil || r.took+duration > limit || mishaps == maxMishaps
		if done || (m.Patch == "" && err == nil) {
			return r
		}
	}
}

// findings are the part of a campaign's report that is needed here.
type findings struct {
	Faults     int
	Violations []struct{ Rule books.Rule }
}

// loadDependent rules may break on a machine that is busy with something else: they are no
// evidence.
var loadDependent = []books.Rule{verify.Conclusive, verify.Recovery, verify.Resources}

// broken are the rules that were, without those that may have been for other reasons.
func (f findings) broken() (rules []string) {
	for _, v := range f.Violations {
		if !slices.Contains(loadDependent, v.Rule) && !slices.Contains(rules, string(v.Rule)) {
			rules = append(rules, string(v.Rule))
		}
	}
	return rules
}

// campaignOn runs one campaign on the tree in dir.
func (l *lab) campaignOn(ctx context.Context, m mutant, dir string, offset int, duration time.Duration, seed int) (found findings, err error) {
	ctx, cancel := context.WithTimeout(ctx, duration+verdictTime)
	defer cancel()
	out := filepath.Join(l.out, m.Name)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return found, err
	}
	printed, err := os.Create(filepath.Join(out, fmt.Sprintf("campaign-%d.txt", seed)))
	if err != nil {
		return found, err
	}
	defer func() { _ = printed.Close() }()
	report := filepath.Join(out, fmt.Sprintf("faults-%d.json", seed))
	_ = os.Remove(report) // of an earlier run
	cmd := exec.CommandContext(ctx, l.campaign)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = takeDownTime
	cmd.Env = append(os.Environ(), "FAULTS="+m.Faults, "DURATION="+duration.String(), fmt.Sprint("SEED=", seed), "FAULTS_OUT="+out,
		fmt.Sprint("PORT_OFFSET=", offset), "STACK_DIR=.stack-mutant", "CLIENTS=48", "FAULT_MIN=500ms", "FAULT_MAX=2s", "FLOOR=1", "PATIENCE=45s", "GENERATED=0")
	cmd.Env = append(cmd.Env, strings.Fields(m.Env)...)
	broke := cmd.Run() // its status says less than its report
	raw, err := os.ReadFile(report)
	if err != nil {
		return found, fmt.Errorf("the campaign reached no verdict, see %s: %w", printed.Name(), errors.Join(broke, ctx.Err()))
	}
	return found, json.Unmarshal(raw, &found)
}
