package main

import (
	"encoding/base64"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

// has looks for a part of a page, which is too long for a message.
func has(t *testing.T, page, part string) {
	t.Helper()
	require.GreaterOrEqual(t, strings.Index(page, part), 0, part)
}

func drawn(t *testing.T, s result, attempts []journal.Attempt, evidence string) (page, picture string) {
	t.Helper()
	made, err := pageOf(s, attempts, evidence)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, made.Write(file))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), "data:image/svg&#43;xml;base64,")
	require.True(t, found, "the page has the picture in it")
	encoded, after, _ := strings.Cut(rest, `"`)
	svg, err := base64.StdEncoding.DecodeString(html.UnescapeString(encoded))
	require.NoError(t, err)
	return before + after, string(svg)
}

func TestDrawPage_DrawsTheWholePage(t *testing.T) {
	t.Parallel()
	page, picture := drawn(t, result{Command: "task test:faults SEED=7", Attempts: 4711, Faults: 2,
		Runs: []faultRun{
			{Name: "kill <api-1>", Kind: "replica <kill>", Injected: time.Second, Healed: 2 * time.Second, Recovered: 2500 * time.Millisecond, InFlight: 9},
			{Name: "redis flush", Kind: "redis flush", Injected: 3 * time.Second, Healed: 4 * time.Second, Recovered: 4 * time.Second},
			{Name: "not there", Kind: "not there", NotFired: true},
		},
		Promises: []report.Promise{{Rule: "one charge", Broken: 2}, {Rule: "one answer"}}, Violations: make([]books.Violation, 2),
	}, []journal.Attempt{{Return: time.Second, Invoke: 999 * time.Millisecond, Status: 201}, {Return: 2 * time.Second, Invoke: time.Second, Error: "reset"}},
		"history of k1")
	for _, want := range []string{"SEED=7", "replica &lt;kill&gt;                              1          9             0.5 s\n", "broken 2 times", `class="kept">one answer`, "4711", "history of k1", "Power cuts",
		"Promises were broken: 2 violations", "oncepay under 2 faults", "\nredis flush "} {
		has(t, page, want)
	}
	for _, want := range []string{">replica &lt;kill&gt;</text>", ">redis flush</text>", "no answer, or 5xx", ">all, p99</text>", "fill:#D1495B", "seconds since the start"} {
		has(t, picture, want)
	}
	require.Negative(t, strings.Index(picture, "not there"))
	for what, unwanted := range map[string]string{"a link to the outside": "http", "what the template did not trust": "ZgotmplZ",
		"a death that was not measured": "without an answer after a death", "what did not happen": "not there"} {
		require.Equal(t, -1, strings.Index(page, unwanted), what)
	}
}

// A page of nothing, and one of a night, are drawn, too: the latter no wider than a browser can
// show.
func TestDrawPage_DrawsRunsOfAnyLength(t *testing.T) {
	t.Parallel()
	page, _ := drawn(t, result{}, nil, "")
	has(t, page, "oncepay under 0 faults")
	var attempts []journal.Attempt
	for at := time.Duration(0); at < 8*time.Hour; at += time.Second {
		attempts = append(attempts, journal.Attempt{Return: at + time.Millisecond, Invoke: at, Status: 201})
	}
	_, picture := drawn(t, result{}, attempts, "")
	require.Less(t, len(picture), 2<<20)
	has(t, picture, ">10000</text>")
}
