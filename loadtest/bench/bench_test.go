package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

func TestSpread_IsMedianAndExtremes(t *testing.T) {
	t.Parallel()
	require.Equal(t, spread{2, 1, 9}, spreadOf([]float64{9, 1, 2}))
	require.Equal(t, spread{3, 1, 9}, spreadOf([]float64{9, 1, 2, 4}))
	require.Equal(t, spread{}, spreadOf(nil))
	require.Equal(t, "2.00 (1.00–9.00)", spread{2, 1, 9}.String())
	require.Equal(t, "12.0", spread{12, 12, 12}.String())
}

// TestRatio_IsOfEachRound: what slows a whole round down changes no ratio.
func TestRatio_IsOfEachRound(t *testing.T) {
	t.Parallel()
	r := results{"theirs": {{"cpu": 20}, {"cpu": 200}}, "ours": {{"cpu": 10}, {"cpu": 100}}, "idle": {{"cpu": 0}, {"cpu": 0}}}
	require.Equal(t, spread{2, 2, 2}, r.Ratio("theirs", "ours", "cpu"))
	require.Equal(t, spread{}, r.Ratio("theirs", "idle", "cpu"))
	require.Equal(t, spread{110, 20, 200}, r.Of("theirs", "cpu"))
}

func TestInterleave_TakesTurns(t *testing.T) {
	t.Parallel()
	var turns []string
	turn := func(name string) trial {
		return trial{name, func(context.Context) (sample, error) {
			turns = append(turns, name)
			return sample{"n": float64(len(turns))}, nil
		}}
	}
	b := &bench{out: io.Discard}
	found, err := b.interleave(t.Context(), 2, []trial{turn("a"), turn("b")})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "b"}, turns)
	require.Equal(t, spread{3, 2, 4}, found.Of("b", "n"))
}

func TestCosting_IsInMicrosecondsForEachAnswer(t *testing.T) {
	t.Parallel()
	ourselves := map[int]string{os.Getpid(): "us"}
	busy := func(answered float64) func() (sample, error) {
		return func() (sample, error) {
			for until := usedCPU() + 100*time.Millisecond; usedCPU() < until; {
				continue
			}
			return sample{"answered": answered}, nil
		}
	}
	found, err := costing(ourselves, busy(1000))
	require.NoError(t, err)
	require.Positive(t, found["us"])
	none, err := costing(ourselves, busy(0))
	require.NoError(t, err)
	require.Greater(t, none["us"], 10*found["us"], "nothing was answered")
	_, err = costing(ourselves, func() (sample, error) { return nil, errors.New("no") })
	require.EqualError(t, err, "no")
}

func TestNumber_HasThreeFigures(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]float64{"0": 0, "0.50": 0.5, "9.99": 9.99, "12.3": 12.34, "999": 999.4, "1,000": 999.9, "1,234,567": 1234567} {
		require.Equal(t, want, number(f))
	}
}

// pageWith is the page of a run that found something, which is written into a folder, too.
func pageWith(t *testing.T, part string, found map[string]any) string {
	t.Helper()
	b := &bench{cfg: config{page: filepath.Join(t.TempDir(), "BENCH.md")}, out: io.Discard, plots: map[string]*plot.Plot{}}
	require.NoError(t, b.write(head{Command: "go run it", Began: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Machine: "2 cores", Load: 0.1, Found: map[string]map[string]any{part: found}}))
	written, err := os.ReadFile(b.cfg.page)
	require.NoError(t, err)
	require.NotContains(t, string(written), "no value")
	return string(written)
}

func TestPage_SaysWhereItIsFrom(t *testing.T) {
	t.Parallel()
	text := pageWith(t, "none", nil)
	for _, want := range []string{"`go run it` on 2026-01-02", "2 cores", "of others: 0.1", "## What made it cheaper"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "## Millions of rows", "a part that was not measured is left out")
}

func TestPage_HasTablesWithTheirCommands(t *testing.T) {
	t.Parallel()
	text := pageWith(t, "sizes", map[string]any{"sized": 4, "atOnce": 8, "order": sample{"orders": 1234, "payments": 0, "all": 1234},
		"payment": sample{"all": 0}, "kept": sample{}})
	for _, want := range []string{"## Bytes\n\n4 orders", "`go run ./loadtest/bench -parts sizes`:\n\n" +
		"| PostgreSQL table | bytes per order | bytes per card payment |\n| --- | --- | --- |\n| orders | 1,234 | 0 |\n"} {
		require.Contains(t, text, want)
	}
}

// TestPage_ComparesContenders: each with oncepay, and with its extremes.
func TestPage_ComparesContenders(t *testing.T) {
	t.Parallel()
	found := results{}
	for i, c := range contenders {
		for _, kind := range kinds {
			found[cell(c.Name, kind.Name, 32)] = []sample{{"rate": float64(1000 * (i + 1)), "server": 10, "redis": 5}, {"rate": float64(2000 * (i + 1)), "server": 10, "redis": 5}}
		}
	}
	text := pageWith(t, "middleware", map[string]any{"found": found, "connections": []int{32}, "kinds": kinds, "contenders": contenders, "ours": ours})
	text = strings.Join(strings.Fields(text), " ")
	require.Contains(t, text, "| SET NX | 4,500 (3,000–6,000) | 10.0 | 5.00 | 1.50 | 1.00 |")
	require.Contains(t, text, "| replays, 32 connections | requests/s |")
}

func TestConfig_ChoosesThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, page string }{
		{"", "loadtest/BENCH.md"}, {"-quick", scratch}, {"-parts millions", scratch}, {"-quick -parts millions,sizes", scratch},
	} {
		cfg, err := parseConfig(strings.Fields(c.args))
		require.NoError(t, err)
		require.Equal(t, c.page, cfg.page, c.args)
	}
	for _, wrong := range []string{"-parts mil", "-parts millions,x", "-parts millions,"} {
		_, err := parseConfig(strings.Fields(wrong))
		require.Error(t, err, wrong)
	}
}

// TestOrderScript_WritesTheColumnsOfTheQueries: pgbench has to send the same statements.
func TestOrderScript_WritesTheColumnsOfTheQueries(t *testing.T) {
	t.Parallel()
	script := words(t, "order.sql")
	queries := ""
	files, err := filepath.Glob("../../sql/queries/*.sql")
	require.NoError(t, err)
	for _, path := range append(files, "../../idempotency/authority/templates.go", "../../idempotency/authority/claim.go") {
		queries += words(t, path) + " "
	}
	queries = strings.NewReplacer("KEYS", "idempotency_keys", "SCOPE", "account_id").Replace(queries)
	for _, name := range []string{"ProbeKey", "CustomerExists", "ReadProducts", "ClaimKey", "InsertOrder", "InsertOrderItem", "TakeStock", "InsertEvent"} {
		_, ours, found := strings.Cut(script, "-- "+name+" ")
		require.True(t, found, name)
		_, theirs, found := strings.Cut(queries, "-- name: "+name+" ")
		require.True(t, found, name)
		_, theirs, _ = strings.Cut(theirs, firstWords(ours))
		require.NotEmpty(t, theirs, "%s begins with other columns", name)
		script = ours // they are in this order
	}
	_, conflict, _ := strings.Cut(queries, "ON CONFLICT (account_id, key) DO UPDATE SET fingerprint")
	conflict, _, _ = strings.Cut(conflict, "`") // the end of the literal
	require.NotEmpty(t, conflict)
	require.Contains(t, words(t, "order.sql"), conflict)
}

// firstWords is a statement up to its values or conditions.
func firstWords(statement string) string {
	for _, end := range []string{" VALUES ", " WHERE ", " SET "} {
		statement, _, _ = strings.Cut(statement, end)
	}
	return statement
}

// words is a file with one space between all words.
func words(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestOverload_SaysWhatWasSent: the client on the same cores may not manage what is offered.
func TestOverload_SaysWhatWasSent(t *testing.T) {
	t.Parallel()
	b := &bench{cfg: config{offered: []float64{1, 10}}, plots: map[string]*plot.Plot{}}
	text := pageWith(t, "overload", b.overloadFound([][]row{
		{{100, "new order", 0.1, sample{"sent": 99.5, "rate": 90, "answered": 90, "p50": 2}}, {100, "list", 0.1, sample{}}},
		{{1000, "new order", 0.5, sample{"sent": 340, "rate": 70, "answered": 70, "p50": 3, overloaded: 270}},
			{1000, "list", 0.5, sample{"sent": 19, "rate": 1, "answered": 1, "p50": 4}}}}, 100))
	require.Contains(t, text, "3.4 × the limit at most")
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"| class | sent/s | done/s |", "| new order | 340 | 70.0 | 3.00 | 0 | 270 | 0 |", "| list | 19.0 | 1.00 |"} {
		require.Contains(t, text, want)
	}
	drawn := b.plots["overload-p50"]
	require.InDelta(t, 340, drawn.X.Max, 0, "where the curves have their points")
	require.Equal(t, "new orders sent a second", drawn.X.Label.Text)
}

func TestSend_TellsAnswersApart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:4])
		if status == 444 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"code":"`+r.URL.Query().Get("code")+`"}`)
	}))
	t.Cleanup(server.Close)
	paths := []string{"/201", "/200", "/503?code=overloaded", "/503?code=request_timeout", "/429?code=rate_limited", "/500", "/444"}
	targets := make([]vegeta.Target, len(paths))
	for i, path := range paths {
		targets[i] = vegeta.Target{Method: http.MethodGet, URL: server.URL + path}
	}
	targeter := vegeta.NewStaticTargeter(targets...)
	var sent atomic.Int64
	found := send(t.Context(), func(to *vegeta.Target) error {
		if sent.Add(1) > int64(len(paths)) {
			return vegeta.ErrNoTargets
		}
		return targeter(to)
	}, 100, time.Second)
	require.InDelta(t, 7, found["sent"], 0, "a second")
	require.InDelta(t, 2, found["rate"], 0, "a second")
	require.Positive(t, found["p99"])
	for name, count := range (sample{"answered": 2, overloaded: 1, limited: 1, unanswered: 1, "other": 2, "503 request_timeout": 1, "500 ": 1}) {
		require.InDelta(t, count, found[name], 0, name)
	}
}

func TestPlots_AreWritten(t *testing.T) {
	t.Parallel()
	b := &bench{cfg: config{page: filepath.Join(t.TempDir(), "p.md")}, out: io.Discard, plots: map[string]*plot.Plot{
		"bars":  drawBars("t", []string{"x", "y"}, []string{"a", "b"}, func(group, of int) float64 { return float64(group + 2*of) }),
		"lines": drawLines("t", "x", "ms", "a", plotter.XYs{{X: 1, Y: 1}, {X: 2, Y: 100}}),
	}}
	require.NoError(t, b.write(head{}))
	for name := range b.plots {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(b.cfg.page), "plots", name+".svg"))
		require.NoError(t, err)
		require.Contains(t, string(text), "</svg>")
	}
}
