package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/timeline"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// maxHistories bounds how many keys are printed in full, and maxShown how many violations of a
// rule.
const maxHistories, maxShown = 5, 5

// report prints the verdict and writes the report files.
func (c *campaign) report(s summary) error {
	c.printTable(s)
	c.printVerdicts(s)
	var evidence strings.Builder
	c.writeEvidence(&evidence, s)
	fmt.Fprint(c.out, evidence.String())
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	base := filepath.Join(c.cfg.Out, c.name())
	if err := os.WriteFile(base+".json", raw, 0o644); err != nil {
		return err
	}
	page, err := os.Create(base + ".html")
	if err != nil {
		return err
	}
	defer func() { _ = page.Close() }()
	fmt.Fprintf(c.out, "\nreport: %s.html, .json and .journal\nagain:  %s\n", base, s.Command)
	return timeline.Write(page, c.page(s, evidence.String()))
}

func (c *campaign) printTable(s summary) {
	fmt.Fprintf(c.out, "\n%-38s %6s %10s %6s %10s\n", "FAULT", "RUNS", "IN FLIGHT", "HITS", "BACK AFTER")
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		t := s.Kinds[kind]
		fmt.Fprintf(c.out, "%-38s %6d %10d %6s %9.1fs\n", kind, t.Faults, t.InFlight, orNothing(t.Hits), t.Slowest.Seconds())
	}
	fmt.Fprintf(c.out, "\n%d faults, %d attempts (%.0f/s), %d keys\n", s.Faults, s.Attempts, float64(s.Attempts)/s.Duration.Seconds(), s.Keys)
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		fmt.Fprintf(c.out, "  %-20s %7d\n", name, s.Effects[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Outcomes)) {
		fmt.Fprintf(c.out, "  answers: %-11s %7d\n", name, s.Outcomes[name])
	}
	fmt.Fprintf(c.out, "nginx passed %d POSTs on to the other replica\n", s.PassedOn)
	fmt.Fprintf(c.out, "%d changes were sent without a key; %d of them got no answer, and may have acted once or not at all\n", s.Keyless.Sent, s.Keyless.Unanswered)
	fmt.Fprintf(c.out, "%d refusals are excused: nginx read the copy that acted only after the attempt that was refused had been sent\n", s.ReadLate)
	fmt.Fprintf(c.out, "%d provider events were delivered again and changed nothing: another transaction settled in the same microsecond\n", s.SameTime)
	fmt.Fprintf(c.out, "%d events are in the stream more than once\n", s.Republished)
	fmt.Fprintf(c.out, "%d generated requests: %d answers that openapi.yaml does not describe\n", s.Generated.Requests, s.Generated.Invalid)
	if s.Failovers > 0 {
		fmt.Fprintf(c.out, "%d failovers of Redis: Sentinel promoted the other server within %.1fs, and the time to recover begins then\n",
			s.Failovers, s.Promotion.Seconds())
	}
	fmt.Fprintf(c.out, "%d deaths of a replica were measured: nginx answered again within %.1fs,\n  and %d running payments were decided within %.1fs\n",
		s.Deaths, s.Death.Nginx.Seconds(), s.Death.Keys, s.Death.Decided.Seconds())
	fmt.Fprintf(c.out, "%d keys of other clients lost an attempt to a death; the slowest was decided %.1fs later, its client's pauses included\n",
		s.Interrupted.Keys, s.Interrupted.Slowest.Seconds())
}

func orNothing(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (c *campaign) printVerdicts(s summary) {
	fmt.Fprintf(c.out, "\n%-56s VERDICT\n", "PROMISE")
	for _, p := range s.Promises {
		verdict := "kept"
		if p.Broken > 0 {
			verdict = fmt.Sprintf("BROKEN %d times", p.Broken)
		}
		fmt.Fprintf(c.out, "%-56s %s\n", p.Rule, verdict)
	}
}

// writeEvidence shows some violations of each rule, and the full histories of some keys.
func (c *campaign) writeEvidence(out io.Writer, s summary) {
	shown := map[books.Rule]int{}
	for _, v := range s.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= maxShown {
			fmt.Fprintln(out, "VIOLATION", v)
		}
	}
	attempts, printed := c.journal.Attempts(), map[books.KeyID]bool{}
	histories := verify.History(attempts)
	maps.Copy(histories, verify.Changes(attempts))
	for _, v := range s.Violations {
		id := books.KeyID{Account: v.Account, Key: v.Key}
		if v.Key == "" || printed[id] || len(printed) == maxHistories {
			continue
		}
		printed[id] = true
		fmt.Fprintf(out, "\nhistory of %s of %s (%s):\n", v.Key, v.Account, v.Rule)
		for _, a := range sorted(histories[id]) {
			fmt.Fprintln(out, " ", a)
		}
	}
}

func sorted(attempts []journal.Attempt) []journal.Attempt {
	return slices.SortedFunc(slices.Values(attempts), func(a, b journal.Attempt) int { return cmp.Compare(a.Invoke, b.Invoke) })
}
