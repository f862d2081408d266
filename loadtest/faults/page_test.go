package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

// has looks for a part of a page, which is too long for a message.
func has(t *testing.T, page, part string) {
	t.Helper()
	require.GreaterOrEqual(t, strings.Index(page, part), 0, part)
}

func drawn(t *testing.T, s summary, attempts []journal.Attempt, evidence string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, pageOf(s, attempts, evidence).Write(&out))
	return out.String()
}

func TestDrawPage_DrawsTheWholePage(t *testing.T) {
	t.Parallel()
	page := drawn(t, summary{Command: "task test:faults SEED=7", Attempts: 4711, Faults: 2, Deaths: 0,
		Runs: []faultRun{
			{Name: "kill <api-1>", Victim: fault.Replicas, Injected: time.Second, Healed: 2 * time.Second, Recovered: 2500 * time.Millisecond, InFlight: 9},
			{Name: "redis flush", Victim: fault.Redis, Injected: 3 * time.Second, Healed: 4 * time.Second, Recovered: 4 * time.Second},
			{Name: "not there", Victim: fault.Mail, NotFired: true},
		},
		Promises: []report.Promise{{Rule: "one charge", Broken: 2}, {Rule: "one answer"}}, Violations: make([]books.Violation, 2),
		Kinds: map[string]tally{"replica kill": {Faults: 1, InFlight: 9, Slowest: 500 * time.Millisecond}},
	}, []journal.Attempt{{Return: time.Second, Invoke: 999 * time.Millisecond, Status: 201}, {Return: 2 * time.Second, Invoke: time.Second, Error: "reset"}},
		"history of k1")
	for _, want := range []string{"SEED=7", "kill &lt;api-1&gt;: 1.0 s to 2.0 s, 9 requests in flight, back after 500 ms", `class="run replicas"`,
		`class="run redis"`, ">Redis</text>", "broken 2 times", `class="kept">one answer`, "4711", "history of k1", "Power cuts", `<polygon class="unknown"`,
		"Promises were broken: 2 violations", "oncepay under 2 faults", "<td>replica kill</td>"} {
		has(t, page, want)
	}
	for what, unwanted := range map[string]string{"a link to the outside": "http", "what the template did not trust": "ZgotmplZ",
		"an empty tile": "without an answer after a death", "what did not happen": "not there"} {
		require.Equal(t, -1, strings.Index(page, unwanted), what)
	}
}

// A page of nothing, and one of a night, are drawn, too: the latter no wider than a browser can
// show.
func TestDrawPage_DrawsRunsOfAnyLength(t *testing.T) {
	t.Parallel()
	has(t, drawn(t, summary{}, nil, ""), "oncepay under 0 faults")
	var attempts []journal.Attempt
	for at := time.Duration(0); at < 8*time.Hour; at += time.Second {
		attempts = append(attempts, journal.Attempt{Return: at + time.Millisecond, Invoke: at, Status: 201})
	}
	page := drawn(t, summary{}, attempts, "")
	require.Less(t, len(page), 2<<20)
	has(t, page, `>7h55m</text>`)
}
