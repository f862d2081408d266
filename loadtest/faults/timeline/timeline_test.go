package timeline_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/timeline"
	"github.com/oncepay/oncepay/loadtest/report"
)

// has looks for a part of a page, which is too long for a message.
func has(t *testing.T, page, part string) {
	t.Helper()
	require.GreaterOrEqual(t, strings.Index(page, part), 0, part)
}

func drawn(t *testing.T, p timeline.Page) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, timeline.Write(&out, p))
	return out.String()
}

func TestWrite_DrawsTheWholePage(t *testing.T) {
	t.Parallel()
	page := drawn(t, timeline.Page{Command: "task test:faults SEED=7",
		Head: report.Head{Title: "campaign", Verdict: "Promises were broken", Broken: true,
			Tiles: []report.Tile{{Value: "4711", Label: "attempts"}, {Label: "not measured"}}},
		Attempts: []timeline.Attempt{{At: time.Second, Took: time.Millisecond}, {At: 2 * time.Second, Took: time.Second, Outcome: timeline.Unknown}},
		Faults: []timeline.Fault{
			{Name: "kill <api-1>", Lane: "Replicas", From: time.Second, To: 2 * time.Second, Back: 2500 * time.Millisecond, InFlight: 9},
			{Name: "redis flush", Lane: "Redis", From: 3 * time.Second, To: 4 * time.Second, Back: 4 * time.Second},
		},
		Promises: []report.Promise{{Text: "one charge", Broken: 2}, {Text: "one answer"}},
		Kinds:    []timeline.Kind{{Name: "replica kill", Faults: 1, InFlight: 9, Slowest: 500 * time.Millisecond}},
		Evidence: "history of k1", NotCovered: []string{"power cuts"}})
	for _, want := range []string{"SEED=7", "kill &lt;api-1&gt;: 1.0 s to 2.0 s, 9 requests in flight, back after 500 ms", `class="run replicas"`,
		`class="run redis"`, ">Redis</text>", "broken 2 times", `class="kept">one answer`, "4711", "history of k1", "power cuts", `<polygon class="unknown"`} {
		has(t, page, want)
	}
	for what, unwanted := range map[string]string{"a link to the outside": "http", "what the template did not trust": "ZgotmplZ", "an empty tile": "not measured"} {
		require.Equal(t, -1, strings.Index(page, unwanted), what)
	}
}

// A page of nothing, and one of a night, are drawn, too: the latter no wider than a browser can
// show.
func TestWrite_DrawsRunsOfAnyLength(t *testing.T) {
	t.Parallel()
	has(t, drawn(t, timeline.Page{Head: report.Head{Title: "nothing"}}), "nothing")
	var attempts []timeline.Attempt
	for at := time.Duration(0); at < 8*time.Hour; at += time.Second {
		attempts = append(attempts, timeline.Attempt{At: at, Took: time.Millisecond})
	}
	page := drawn(t, timeline.Page{Attempts: attempts})
	require.Less(t, len(page), 2<<20)
	has(t, page, `>7h55m</text>`)
}
