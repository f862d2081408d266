package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/oncepay/oncepay/loadtest/bench/curve"
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
	b := &bench{cfg: config{rounds: 2}, out: io.Discard}
	found, err := b.interleave(t.Context(), []trial{turn("a"), turn("b")}, "n")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "b"}, turns)
	require.Equal(t, spread{3, 2, 4}, found.Of("b", "n"))
}

func TestPerRequest_IsInMicroseconds(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 250, perRequest(time.Second, 4000), 0)
	require.InDelta(t, 0, perRequest(0, 0), 0, "nothing was answered")
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
	b := &bench{cfg: config{page: filepath.Join(t.TempDir(), "BENCH.md")}, plots: map[string]*plot.Plot{}}
	require.NoError(t, b.write(head{Command: "go run it", Date: "2026-01-02", Machine: "2 cores", Load: "0.1", Found: map[string]any{part: found}}))
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
	require.NotContains(t, text, "## Growth", "a part that was not measured is left out")
}

func TestPage_HasAlignedTablesWithTheirCommands(t *testing.T) {
	t.Parallel()
	text := pageWith(t, "sizes", map[string]any{"sized": 4, "atOnce": 8, "tables": sample{"orders": 1}, "order": sample{"orders": 1234, "all": 1234},
		"payment": sample{"all": 0}, "kept": sample{}, "commands": parseCommands("cmdstat_get:calls=1,usec=5", 1)})
	for _, want := range []string{"## Bytes and commands\n\n4 orders", "`go run ./loadtest/bench -parts sizes`:\n\n" +
		"| PostgreSQL table | bytes per order | bytes per card payment |\n| ---              | ---             | ---                    |\n" +
		"| orders           | 1,234           | 0                      |\n", "| GET           | 1.00            | 5.00                         |\n"} {
		require.Contains(t, text, want)
	}
}

// TestPage_ComparesContenders: each with oncepay, and with its extremes.
func TestPage_ComparesContenders(t *testing.T) {
	t.Parallel()
	b := &bench{cfg: config{connections: []int{32}}, plots: map[string]*plot.Plot{}}
	found := results{}
	for i, c := range contenders {
		for _, kind := range []string{newKeys, replays} {
			found[cell(c.Name, kind, 32)] = []sample{{"rate": float64(1000 * (i + 1)), "server": 10, "redis": 5}, {"rate": float64(2000 * (i + 1)), "server": 10, "redis": 5}}
		}
	}
	text := pageWith(t, "middleware", b.middlewareFound(found))
	text = strings.Join(strings.Fields(text), " ")
	require.Contains(t, text, "| SET NX | 4,500 (3,000–6,000) | 10.0 | 5.00 | 1.50 | 1.00 |")
	require.Contains(t, text, "| replays, 32 connections | requests/s |")
	require.Contains(t, b.plots, "middleware")
}

func TestConfig_ChoosesThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, page string }{
		{"", page}, {"-quick", scratch}, {"-parts growth", scratch}, {"-quick -page x.md", "x.md"},
	} {
		cfg, err := parseConfig(strings.Fields(c.args))
		require.NoError(t, err)
		require.Equal(t, c.page, cfg.page, c.args)
	}
	for _, wrong := range []string{"-parts gr", "-parts growth,x", "-rounds 0", "-for 0s", "-more 0"} {
		_, err := parseConfig(strings.Fields(wrong))
		require.Error(t, err, wrong)
	}
}

func TestPgbench_IsParsed(t *testing.T) {
	t.Parallel()
	printed := `transaction type: loadtest/bench/order.sql
number of transactions actually processed: 1234
number of failed transactions: 0 (0.000%)
latency average = 1.618 ms
tps = 617.5 (without initial connection time)
`
	n, found, err := parsePgbench(printed)
	require.NoError(t, err)
	require.Equal(t, 1234, n)
	require.Equal(t, sample{"rate": 617.5, "p50": 1.618}, found)
	_, _, err = parsePgbench(strings.Replace(printed, "failed transactions: 0", "failed transactions: 3", 1))
	require.ErrorContains(t, err, "3 transactions")
	_, _, err = parsePgbench("pgbench: error")
	require.ErrorContains(t, err, "tps")
}

// TestRedisBenchmark_IsParsed although the command's quotes, lines and commas are not escaped.
func TestRedisBenchmark_IsParsed(t *testing.T) {
	t.Parallel()
	printed := "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n" +
		"\"SET k {\"a\",\"b\":1}\n\",\"50000.5\",\"0.3\",\"0.1\",\"0.25\",\"0.4\",\"0.5\",\"2.1\"\n"
	found, err := parseRedisBenchmark(printed)
	require.NoError(t, err)
	require.Equal(t, []float64{50000.5, 0.25, 0.5}, []float64{found["rate"], found["p50"], found["p99"]})
	for _, wrong := range []string{"", "ERR", printed[:len(printed)-30]} {
		_, err = parseRedisBenchmark(wrong)
		require.Error(t, err, wrong)
	}
}

func TestRecord_IsPutBackIntoProgress(t *testing.T) {
	t.Parallel()
	r, err := recordOf([]byte(`{"owner":"o","status":"Completed","responseStatusCode":201}` + "\n{}"))
	require.NoError(t, err)
	require.Equal(t, record{"o", `{"owner":"o","status":"InProgress"}` + "\n", `{"owner":"o","responseStatusCode":201,"status":"InProgress"}` + "\n{}"}, r)
	_, err = recordOf([]byte("x"))
	require.Error(t, err)
}

func TestCommands_AreParsedMostFrequentFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, []redisCommand{{"EVALSHA", 2, 20}, {"XINFO STREAM", 0.2, 2.5}},
		parseCommands("# Commandstats\r\ncmdstat_xinfo|stream:calls=2,usec=5,usec_per_call=2.50\r\ncmdstat_evalsha:calls=20,usec=400,usec_per_call=20.00\r\n", 10))
}

// TestOrderScript_WritesTheColumnsOfTheQueries: the floor has to be of the same statements.
func TestOrderScript_WritesTheColumnsOfTheQueries(t *testing.T) {
	t.Parallel()
	script := words(t, "order.sql")
	queries := ""
	files, err := filepath.Glob("../../sql/queries/*.sql")
	require.NoError(t, err)
	for _, path := range append(files, "../../idempotency/authority/statements.go") {
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
	text := pageWith(t, "overload", b.overloadFound([]*curve.Row{
		{Offered: 100, Class: curve.NewOrder, Sent: 99.5, Done: 90, P50: 2},
		{Offered: 1000, Class: curve.NewOrder, Sent: 340, Done: 70, P50: 3},
		{Offered: 1000, Class: "list", Sent: 19, Done: 1, P50: 4}}, 100, "go run it"))
	require.Contains(t, text, "3.4 × the limit at most")
	text = strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"| class | sent/s | done/s |", "| new order | 340 | 70.0 |", "| list | 19.0 | 1.00 |"} {
		require.Contains(t, text, want)
	}
	drawn := b.plots["overload-p50"]
	require.InDelta(t, 340, drawn.X.Max, 0, "where the curves have their points")
	require.Equal(t, "new orders sent a second", drawn.X.Label.Text)
}

func TestPlots_AreWritten(t *testing.T) {
	t.Parallel()
	b := &bench{cfg: config{page: filepath.Join(t.TempDir(), "p.md")}, plots: map[string]*plot.Plot{
		"bars":  drawBars("t", []string{"a", "b"}, []bar{{"x", []float64{1, 2}}, {"y", []float64{0, 4}}}),
		"lines": drawLines("t", "x", "ms", true, []line{{"a", plotter.XYs{{X: 1, Y: 1}, {X: 2, Y: 100}}}, {"none", nil}}),
	}}
	require.NoError(t, b.write(head{}))
	for name := range b.plots {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(b.cfg.page), "plots", name+".svg"))
		require.NoError(t, err)
		require.Contains(t, string(text), "</svg>")
	}
}
