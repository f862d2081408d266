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
// It prints the table of MUTANTS.md, and ends with a non-zero status when a mutant survives, or
// could not be tried.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stack.Interrupts()...)
	defer stop()
	log.SetFlags(log.Ltime)
	only := strings.FieldsFunc(os.Getenv("ONLY"), func(r rune) bool { return r == ',' })
	if err := run(ctx, only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string) error {
	mutants, err := readMutants("loadtest/mutants", only)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := openLab(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(l.dir) }()
	results := l.tryAll(ctx, mutants)
	if err := ctx.Err(); err != nil {
		return err
	}
	rows, err := table(results)
	fmt.Printf("\nCommit %s, %s, %s, %d CPUs, %s in all\n\n%s", l.commit, began.UTC().Format(time.DateOnly), runtime.Version(),
		runtime.NumCPU(), time.Since(began).Round(time.Second), rows)
	return err
}

// table is the one of MUTANTS.md. The error says how many mutants were not caught, and how many
// controls did not pass.
func table(results []result) (text string, err error) {
	text = "| mutant | it takes out | faults | found broken | after | faults it took |\n|---|---|---|---|---|---|\n"
	failed := 0
	for _, r := range results {
		control, found := r.mutant.Patch == "", strings.Join(r.broken, "<br>")
		switch {
		case r.err != nil:
			found = "NOT TRIED"
		case found == "" && control:
			found = "passes"
		case found == "":
			found = "SURVIVED"
		}
		if r.err != nil || (len(r.broken) > 0) == control {
			failed++
		}
		text += fmt.Sprintf("| %s | %s | %s | %s | %.0f s | %d |\n", r.mutant.Name, r.mutant.Removes, r.mutant.Faults, found, r.took.Seconds(), r.faults)
	}
	if failed > 0 {
		err = fmt.Errorf("%d of %d did not end as they should", failed, len(results))
	}
	return text, err
}
