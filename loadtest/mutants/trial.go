package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const (
	// firstRound and longestRound bound a campaign's faults; each is three times as long as the one
	// before.
	firstRound, longestRound = 15 * time.Second, 3 * time.Minute
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

// Why a mutant could not be tried.
var (
	errNotApplied  = errors.New("the patch does not apply any more")
	errNotCompiled = errors.New("it does not compile")
	errNoVerdict   = errors.New("the campaign reached no verdict")
)

// result is what became of a mutant.
type result struct {
	mutant mutant
	broken []books.Rule  // the promises by which it was caught; none: it survived
	took   time.Duration // from the first campaign's beginning to the last one's verdict
	faults int           // that it took
	err    error         // it could not be tried
}

func (r result) caught() bool { return len(r.broken) > 0 && r.err == nil }

// loadDependent rules may break on a machine that is busy with something else: they are no
// evidence.
var loadDependent = []books.Rule{verify.Conclusive, verify.Recovery, verify.Resources}

// try runs longer and longer campaigns on a mutant until it is caught or the limit has passed. The
// control has one campaign that reaches a verdict.
func (l *lab) try(ctx context.Context, m mutant, offset int) result {
	r := result{mutant: m}
	dir, err := l.tree(ctx, m)
	defer func() { _ = os.RemoveAll(dir) }()
	if err != nil {
		r.err = err
		l.say("%-26s %v", m.Name, err)
		return r
	}
	began, mishaps := time.Now(), 0
	for duration, seed := firstRound, l.cfg.Seed; ; duration, seed = min(3*duration, longestRound), seed+1 {
		if m.Patch == "" {
			duration = max(firstRound, controlRound*time.Duration(1+strings.Count(m.Faults, ",")))
		}
		l.say("%-26s %s of %s", m.Name, duration, m.Faults)
		found, err := l.campaignOn(ctx, m, dir, offset, duration, seed)
		r.took, r.broken, r.err = time.Since(began), found.broken(), err
		r.faults += found.Faults
		if err != nil {
			mishaps++
		}
		l.say("%-26s found %s after %s and %d faults", m.Name, cmp.Or(r.evidence("; "), "nothing"), r.took.Round(time.Second), r.faults)
		done := r.caught() || ctx.Err() != nil || r.took+duration > l.cfg.Limit || mishaps == maxMishaps
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

// broken are the rules that were, without those that may have been for other reasons.
func (f findings) broken() []books.Rule {
	var rules []books.Rule
	for _, v := range f.Violations {
		if !slices.Contains(loadDependent, v.Rule) && !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}

// campaignOn runs one campaign on the tree in dir.
func (l *lab) campaignOn(ctx context.Context, m mutant, dir string, offset int, duration time.Duration, seed uint64) (found findings, err error) {
	ctx, cancel := context.WithTimeout(ctx, duration+verdictTime)
	defer cancel()
	out := filepath.Join(l.cfg.Out, m.Name)
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
		return found, fmt.Errorf("%w, see %s: %w", errNoVerdict, printed.Name(), errors.Join(broke, ctx.Err()))
	}
	return found, json.Unmarshal(raw, &found)
}

// table is the outcome of a run; the first results are the controls'.
type table struct {
	commit  string
	date    time.Time
	took    time.Duration
	results []result
}

func (t table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%-26s %-9s %6s %6s  %s\n", "MUTANT", "VERDICT", "AFTER", "FAULTS", "BROKEN PROMISES")
	for _, r := range t.results {
		fmt.Fprintf(out, "%-26s %-9s %5.0fs %6d  %s\n", r.mutant.Name, r.verdict(), r.took.Seconds(), r.faults, r.evidence("; "))
	}
	mutants := t.count(func(r result) bool { return r.mutant.Patch != "" })
	caught := t.count(func(r result) bool { return r.mutant.Patch != "" && r.caught() })
	fmt.Fprintf(out, "\ncaught %d of %d mutants of %s after %s\n", caught, mutants, t.commit, t.took.Round(time.Second))
}

// count counts results.
func (t table) count(is func(result) bool) (n int) {
	for _, r := range t.results {
		if is(r) {
			n++
		}
	}
	return n
}

// verdict is nil when all mutants were caught and the controls passed.
func (t table) verdict() error {
	if failed := t.count(func(r result) bool { return !r.passed() }); failed > 0 {
		return fmt.Errorf("%d of %d did not end as they should", failed, len(t.results))
	}
	return nil
}

// passed: a mutant has to be caught, a control must not be.
func (r result) passed() bool { return r.err == nil && r.caught() == (r.mutant.Patch != "") }

func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "NOT TRIED"
	case r.mutant.Patch == "" && r.caught():
		return "BROKEN"
	case r.mutant.Patch == "":
		return "passes"
	case r.caught():
		return "caught"
	default:
		return "SURVIVED"
	}
}

func (r result) evidence(separator string) string {
	if r.err != nil {
		return r.err.Error()
	}
	var names []string
	for _, rule := range r.broken {
		names = append(names, string(rule))
	}
	return strings.Join(names, separator)
}

// markdown is the table for the repository.
func (t table) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Planted bugs

Each mutant takes one safeguard out of the service; fault campaigns then look for a broken promise until they find one. The patches
are in [mutants/](mutants); `+"`task test:mutants`"+` repeats the table, and `+"`task test:mutants ONLY=settle-fence`"+` one line of it. The
control is the tree without a patch, under all faults of the table.

Commit %s, %s, %s, %d CPUs, %s in all; a campaign's set-up and verdict, some 30 s, are in the seconds.

| mutant | it takes out | faults | found broken | after | faults it took |
|---|---|---|---|---|---|
`, t.commit, t.date.UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), t.took.Round(time.Second))
	for _, r := range t.results {
		found := r.evidence("<br>")
		if !r.caught() {
			found = r.verdict()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f s | %d |\n", r.mutant.Name, r.mutant.Removes, r.mutant.Faults, found, r.took.Seconds(), r.faults)
	}
	return b.Bytes()
}
