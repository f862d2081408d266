package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// writeHistory shows what a journal holds: of these keys every attempt, in order; without keys what
// clients did in all.
func writeHistory(out io.Writer, args []string) error {
	if len(args) == 0 {
		return errors.New("history needs a journal, and perhaps keys")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	attempts, err := journal.Read(file)
	if errors.Is(err, journal.ErrTorn) {
		fmt.Fprintln(out, err) // and the rest is good
	} else if err != nil {
		return err
	}
	if len(args) == 1 {
		return writeMix(out, attempts)
	}
	histories := verify.History(attempts)
	maps.Copy(histories, verify.Changes(attempts))
	for id, history := range histories {
		if !slices.Contains(args[1:], id.Key) { //nolint:gosec // there are at least two
			continue
		}
		fmt.Fprintf(out, "%s of %s:\n", id.Key, id.Account)
		for _, a := range sorted(history) {
			fmt.Fprintln(out, " ", a)
		}
	}
	return nil
}

// writeMix counts keys and attempts by what they were for.
func writeMix(out io.Writer, attempts []journal.Attempt) error {
	type part struct {
		purpose   journal.Purpose
		operation string
	}
	type count struct {
		keys     map[books.KeyID]bool
		attempts int
		outcomes map[journal.Outcome]int
	}
	mix := map[part]*count{}
	for _, a := range attempts {
		p := part{a.Purpose, a.Operation}
		if mix[p] == nil {
			mix[p] = &count{keys: map[books.KeyID]bool{}, outcomes: map[journal.Outcome]int{}}
		}
		mix[p].keys[books.KeyID{Account: a.Account, Key: a.Key}] = true
		mix[p].attempts++
		mix[p].outcomes[a.Outcome()]++
	}
	outcomes := []journal.Outcome{journal.Succeeded, journal.Refused, journal.Reused, journal.InProgress, journal.Rejected, journal.Expired, journal.LookedUp, journal.TurnedAway, journal.Unknown}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "PURPOSE\tOPERATION\tKEYS\tATTEMPTS")
	for _, o := range outcomes {
		fmt.Fprintf(table, "\t%s", o)
	}
	fmt.Fprintln(table)
	inOrder := func(a, b part) int {
		return cmp.Or(cmp.Compare(a.purpose, b.purpose), cmp.Compare(a.operation, b.operation))
	}
	for _, p := range slices.SortedFunc(maps.Keys(mix), inOrder) {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d", p.purpose, p.operation, len(mix[p].keys), mix[p].attempts)
		for _, o := range outcomes {
			fmt.Fprintf(table, "\t%d", mix[p].outcomes[o])
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
