package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/report"
)

func runOf(seed uint64, faults int, slowest time.Duration) result {
	killed := faultRun{Kind: "replica kill", InFlight: 9, Recovered: slowest}
	last := killed
	last.Promotion, last.Death = slowest, &death{Nginx: slowest / 2, Keys: 4, Decided: slowest}
	return result{Seed: seed, Command: "task test:faults SEED=" + fmt.Sprint(seed), Date: time.Unix(int64(1000-seed), 0).UTC(), Duration: 30 * time.Minute,
		Faults: faults, Attempts: 60_000, Keys: 20_000, Counts: map[string]int{"orders": 5, "charges": 3, keyless: 40, unanswered: 3}, Commit: "abc", Versions: "go1.26.8, 4 CPUs",
		Kinds: []string{"both replicas kill", "replica kill"}, Runs: append(slices.Repeat([]faultRun{killed}, faults-1), last),
		Promises: []report.Promise{{Rule: books.OneCharge}, {Rule: verify.KeysRecovered}}}
}

func TestOverview_SumsUpRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := runOf(1, 100, 2*time.Second), runOf(2, 20, 4*time.Second)
	bad.Violations = []books.Violation{{Rule: books.OneCharge, Detail: "two"}}
	bad.Promises[0].Broken = 1
	var paths []string
	for i, run := range []result{good, bad} {
		raw, err := json.Marshal(run)
		require.NoError(t, err)
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))))
		require.NoError(t, os.WriteFile(paths[i], raw, 0o600))
	}
	var page bytes.Buffer
	require.NoError(t, writeOverview(&page, paths))
	for _, want := range []string{
		"2 runs, 1h0m0s of load in all: 120 fault runs (120 per hour)", "120,000 client attempts (120,000 per hour) with 40,000 keys", "**1 violations**",
		"| abc | 1 | 30m0s | 100 | 60,000 | 20,000 | 0 | 2.0 s | 1.0 s | 2.0 s | `task test:faults SEED=1` |",
		"| 120 | 120,000 | 40,000 | 1 | 4.0 s | 2.0 s | 4.0 s |", "| one provider charge for each card payment | 1 |",
		"| replica kill | 120 | 1,080 |  | 4.0 s |", "| | seed 2 | seed 1 | all |", "| changes sent without a key | 40 | 40 | 80 |", "| orders | 5 | 5 | 10 |", "- oncepay abc, go1.26.8, 4 CPUs", "| both replicas kill | 0 | 0 |  | 0.0 s |", "Power cuts", "Redis failed over 2 times: Sentinel promoted the other server within 4.0 s",
	} {
		require.Contains(t, page.String(), want)
	}
	require.ErrorContains(t, command(t.Context(), []string{"summary"}, nil, &page), "some reports")
	require.Error(t, writeOverview(&page, []string{filepath.Join(dir, "none")}))
}

// TestReport_HasThePromisesOfTheCode: the committed report is made anew when a promise is added or
// renamed.
func TestReport_HasThePromisesOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../REPORT.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Promises\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var promises []books.Rule
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| \d+ \|$`).FindAllStringSubmatch(section, -1) {
		promises = append(promises, books.Rule(row[1]))
	}
	require.Equal(t, verify.Rules, promises)
}

// The history of a key has all of its attempts, in order of time.
func TestEvidence_HasTheHistories(t *testing.T) {
	t.Parallel()
	var attempts []journal.Attempt
	for i, a := range []journal.Attempt{
		{Key: "one", Account: "a", Operation: "order", Status: 409, Code: "idempotency_in_progress"},
		{Key: "two", Account: "a", Operation: "order", Status: 201},
		{Key: "one", Account: "a", Operation: "order", Status: 201, Number: 2},
		{Key: "one", Account: "b", Operation: "order", Error: "connection reset"},
	} {
		a.Invoke, a.Return = time.Duration(10-i)*time.Second, time.Duration(10-i)*time.Second+1
		attempts = append(attempts, a)
	}
	found := []books.Violation{books.Broken(books.OneCharge, "two").Of(books.KeyID{Account: "a", Key: "one"})}
	text := result{Violations: slices.Repeat(found, 9)}.evidence(attempts)
	require.Equal(t, maxShown, strings.Count(text, "VIOLATION one provider charge for each card payment: two one\n"))
	require.Equal(t, 1, strings.Count(text, "history of one of a ("))
	require.Equal(t, 2, strings.Count(text, "client"))
	require.Less(t, strings.Index(text, " 8.000"), strings.Index(text, "10.000"))
	require.NotContains(t, text, "reset")
}
