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
	// controlRound is for each kind of fault: enough for all of them to come.
	controlRound = 7 * time.Second
	// verdictTime is longer than a campaign takes besides its faults, also where a mutant blocks
	// keys and each of a client's requests waits to its end.
	verdictTime = 9 * time.Minute
	// takeDownTime is what a campaign gets to take its stack down after Ctrl-C.
	takeDownTime = 90 * time.Second
)

// rounds are how long the faults of a mutant's campaigns come, one after the other. A mutant that
// was not caught in the last of them has survived.
var rounds = []time.Duration{15 * time.Second, 45 * time.Second, 2 * time.Minute, 3 * time.Minute}

// lab is where mutants are tried: a clone of the repository in a temporary folder, a work tree of
// it for each of them, and the campaign of its commit for all.
type lab struct {
	commit    string
	dir, out  string
	head      string // the clone
	campaigns string // the program
}

// openLab builds the campaign from the commit as it is: no mutant verifies itself.
func openLab(ctx context.Context) (l *lab, err error) {
	l = &lab{}
	if l.out, err = filepath.Abs("loadtest/out/mutants"); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "oncepay-mutants-"); err != nil {
		return nil, err
	}
	l.head, l.campaigns = filepath.Join(l.dir, "head"), filepath.Join(l.dir, "campaign")
	_, err = command(ctx, ".", "git", "clone", "--quiet", "--shared", ".", l.head)
	if err == nil {
		l.commit, err = command(ctx, l.head, "git", "rev-parse", "--short", "HEAD")
	}
	if err == nil {
		log.Printf("building the campaign of %s", l.commit)
		_, err = command(ctx, l.head, "go", "build", "-o", l.campaigns, "./loadtest/faults")
	}
	if err != nil {
		_ = os.RemoveAll(l.dir)
	}
	return l, err
}

// tree is the commit with the mutant's patch.
func (l *lab) tree(ctx context.Context, m mutant) (dir string, err error) {
	dir = filepath.Join(l.dir, m.Name)
	if _, err := command(ctx, l.head, "git", "worktree", "add", "--quiet", "--detach", dir); err != nil || m.Patch == "" {
		return dir, err
	}
	if _, err = command(ctx, dir, "git", "apply", m.Patch); err != nil {
		return dir, fmt.Errorf("the patch does not apply any more: %w", err)
	}
	// As the stack builds, which then finds all but the linking done.
	_, err = command(ctx, dir, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-tags=failpoints", "./cmd/oncepay", "./cmd/pspsim")
	return dir, err
}

// command runs a program to its end, and returns what it printed, which is also in its error.
func command(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	printed, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, args[0], err, printed)
	}
	return strings.TrimSpace(string(printed)), nil
}

// tryAll tries the controls and all mutants, some at a time, and returns the results in this order.
func (l *lab) tryAll(ctx context.Context, mutants []mutant) []result {
	subjects := append(controls(mutants), mutants...)
	results, ports := make([]result, len(subjects)), make(chan int, sideBySide)
	for slot := range sideBySide {
		ports <- firstPort + slot*portsApart
	}
	var group sync.WaitGroup
	for i, m := range subjects {
		offset := <-ports
		group.Go(func() {
			results[i] = l.try(ctx, m, offset)
			ports <- offset
		})
	}
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

// try runs longer and longer campaigns on a mutant until it is caught. The control has one campaign
// that reaches a verdict.
func (l *lab) try(ctx context.Context, m mutant, offset int) result {
	r, began, rounds := result{mutant: m}, time.Now(), rounds
	if m.Patch == "" {
		long := max(rounds[0], controlRound*time.Duration(1+strings.Count(m.Faults, ",")))
		rounds = []time.Duration{long, long, long} // the second if the first breaks off
	}
	dir, err := l.tree(ctx, m)
	defer func() { _ = os.RemoveAll(dir) }()
	if err != nil {
		log.Printf("%-26s %v", m.Name, err)
		r.err = err
		return r
	}
	for i, duration := range rounds {
		log.Printf("%-26s %s of %s", m.Name, duration, m.Faults)
		found, err := l.campaignOn(ctx, m, dir, offset, duration, i+1)
		r.took, r.broken, r.err = time.Since(began), found.broken(), err
		r.faults += found.Faults
		log.Printf("%-26s found %s after %s and %d faults", m.Name, cmp.Or(strings.Join(r.broken, "; "), "nothing"), r.took.Round(time.Second), r.faults)
		if err != nil {
			log.Printf("%-26s %v", m.Name, err)
		}
		if len(r.broken) > 0 || ctx.Err() != nil || (m.Patch == "" && err == nil) {
			break
		}
	}
	return r
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

// campaignOn runs one campaign on the tree in dir. What it prints is beside its report.
func (l *lab) campaignOn(ctx context.Context, m mutant, dir string, offset int, duration time.Duration, seed int) (found findings, err error) {
	ctx, cancel := context.WithTimeout(ctx, duration+verdictTime)
	defer cancel()
	out := filepath.Join(l.out, m.Name, fmt.Sprint(seed))
	if err := cmp.Or(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return found, err
	}
	printed, err := os.Create(filepath.Join(out, "campaign.txt"))
	if err != nil {
		return found, err
	}
	defer func() { _ = printed.Close() }()
	cmd := exec.CommandContext(ctx, l.campaigns)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = takeDownTime
	cmd.Env = append(os.Environ(), "FAULTS="+m.Faults, "DURATION="+duration.String(), fmt.Sprint("SEED=", seed), "FAULTS_OUT="+out,
		fmt.Sprint("PORT_OFFSET=", offset), "STACK_DIR=.stack-mutant", "CLIENTS=48", "FAULT_MIN=500ms", "FAULT_MAX=2s", "FLOOR=1", "PATIENCE=45s", "GENERATED=0")
	cmd.Env = append(cmd.Env, strings.Fields(m.Env)...)
	broke := cmd.Run() // its status says less than its report
	raw, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("faults-%d.json", seed)))
	if err != nil {
		return found, fmt.Errorf("the campaign reached no verdict, see %s: %w", printed.Name(), errors.Join(broke, ctx.Err()))
	}
	return found, json.Unmarshal(raw, &found)
}
