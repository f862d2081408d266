package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

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
