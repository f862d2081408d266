// Command mutants tests the fault campaign: it takes safeguards out of the service, one at a time,
// and a campaign has to find each of them missing. What no campaign finds is a promise that is not
// checked.
//
//	ONLY=settle-fence,inbox-dedupe go run ./loadtest/mutants
//
// Each mutant is a patch beside this file, whose header says what it removes, which promise that
// breaks and which faults show it. It is applied to a copy of HEAD, built, and run in campaigns
// that become longer until one finds a violation. A tree without a patch has to pass under the same
// faults.
//
// It prints the table of MUTANTS.md, also into the file REPORT if that is set, and ends with a
// non-zero status when a mutant survives, or could not be tried.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	only := strings.FieldsFunc(os.Getenv("ONLY"), func(r rune) bool { return r == ',' })
	if err := run(ctx, only, os.Getenv("REPORT")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string, report string) error {
	mutants, err := readMutants("loadtest/mutants", only)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := openLab(ctx, log.New(os.Stdout, "", log.Ltime))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(l.dir) }()
	results := l.tryAll(ctx, mutants)
	if err := ctx.Err(); err != nil {
		return err
	}
	page := markdown(results, l.commit, began)
	fmt.Printf("\n%s", page)
	if report != "" {
		err = os.WriteFile(report, page, 0o644)
	}
	return errors.Join(err, verdict(results))
}

// verdict is nil when all mutants were caught and the controls passed.
func verdict(results []result) error {
	failed := 0
	for _, r := range results {
		if r.err != nil || r.caught() != (r.mutant.Patch != "") {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d did not end as they should", failed, len(results))
	}
	return nil
}

// markdown is the table for the repository; the first results are the controls'.
func markdown(results []result, commit string, began time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Planted bugs

Each mutant takes one safeguard out of the service; fault campaigns then look for a broken promise until they find one. The patches
are in [mutants/](mutants); `+"`task test:mutants`"+` repeats the table, and `+"`task test:mutants ONLY=settle-fence`"+` one line of it. The
control is the tree without a patch, under all faults of the table.

Commit %s, %s, %s, %d CPUs, %s in all; a campaign's set-up and verdict, some 30 s, are in the seconds.

| mutant | it takes out | faults | found broken | after | faults it took |
|---|---|---|---|---|---|
`, commit, began.UTC().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), time.Since(began).Round(time.Second))
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f s | %d |\n", r.mutant.Name, r.mutant.Removes, r.mutant.Faults, r.found(), r.took.Seconds(), r.faults)
	}
	return b.Bytes()
}

// found is what a result says of its mutant.
func (r result) found() string {
	switch control := r.mutant.Patch == ""; {
	case r.err != nil:
		return "NOT TRIED"
	case !r.caught() && control:
		return "passes"
	case !r.caught():
		return "SURVIVED"
	}
	return strings.Join(r.broken, "<br>")
}
