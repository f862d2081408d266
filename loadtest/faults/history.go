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
	for id, history := range histories(attempts) {
		if slices.Contains(args[1:], id.Key) { //nolint:gosec // there are at least two
			fmt.Fprintf(out, "%s of %s:\n%s", id.Key, id.Account, lines(history))
		}
	}
	return nil
}

// histories are the journal by key, and by the product or customer that is changed.
func histories(attempts []journal.Attempt) map[books.KeyID][]journal.Attempt {
	all := verify.History(attempts)
	maps.Copy(all, verify.Changes(attempts))
	return all
}

// lines has one for each attempt, in order of time.
func lines(history []journal.Attempt) (text string) {
	for _, a := range slices.SortedFunc(slices.Values(history), func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) }) {
		text += "  " + a.String() + "\n"
	}
	return text
}

// writeMix counts keys and attempts by what they were for, and attempts by their outcome.
func writeMix(out io.Writer, attempts []journal.Attempt) error {
	type part struct {
		purpose   journal.Purpose
		operation string
	}
	type keyOf struct {
		part
		books.KeyID
	}
	columns := []journal.Outcome{"KEYS", "ATTEMPTS", journal.Succeeded, journal.Refused, journal.Reused, journal.InProgress, journal.Rejected,
		journal.Expired, journal.LookedUp, journal.TurnedAway, journal.Unknown}
	mix, seen := map[part]map[journal.Outcome]int{}, map[keyOf]bool{}
	for _, a := range attempts {
		p := part{a.Purpose, a.Operation}
		if mix[p] == nil {
			mix[p] = map[journal.Outcome]int{}
		}
		if key := (keyOf{p, books.KeyID{Account: a.Account, Key: a.Key}}); !seen[key] {
			seen[key] = true
			mix[p]["KEYS"]++
		}
		mix[p]["ATTEMPTS"]++
		mix[p][a.Outcome()]++
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "PURPOSE\tOPERATION")
	for _, name := range columns {
		fmt.Fprintf(table, "\t%s", name)
	}
	inOrder := func(a, b part) int {
		return cmp.Or(cmp.Compare(a.purpose, b.purpose), cmp.Compare(a.operation, b.operation))
	}
	for _, p := range slices.SortedFunc(maps.Keys(mix), inOrder) {
		fmt.Fprintf(table, "\n%s\t%s", p.purpose, p.operation)
		for _, name := range columns {
			fmt.Fprintf(table, "\t%d", mix[p][name])
		}
	}
	fmt.Fprintln(table)
	return table.Flush()
}
