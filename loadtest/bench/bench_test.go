package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	require.Equal(t, spread{2, 2, 2}, r.ratio("theirs", "ours", "cpu"))
	require.Equal(t, spread{}, r.ratio("theirs", "idle", "cpu"))
	require.Equal(t, spread{110, 20, 200}, r.of("theirs", "cpu"))
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
	require.Equal(t, spread{3, 2, 4}, found.of("b", "n"))
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

func TestTable_IsAlignedMarkdown(t *testing.T) {
	t.Parallel()
	tab := table{header: []string{"what", "µs"}}
	tab.add("order", "1,000")
	require.Equal(t, "| what  | µs    |\n|---|---|\n| order | 1,000 |\n", tab.String())
}

func TestPage_HasEachTableWithItsCommand(t *testing.T) {
	t.Parallel()
	cfg := config{page: "loadtest/BENCH.md", rounds: 3}
	tab := table{command: "go run it", header: []string{"a"}}
	text := pageOf(cfg, machine{"2 cores", "0.1"}, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), []section{{title: "T", text: "Text.", tables: []table{tab},
		plots: []picture{{"loadtest/plots/t.svg", "alt"}}}})
	for _, want := range []string{"2026-01-02", "2 cores", "\n## T\n\nText.\n", "`go run it`:\n\n| a |", "![alt](plots/t.svg)", "of others: 0.1"} {
		require.Contains(t, text, want)
	}
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
	answer, err := parsePgbench(printed)
	require.NoError(t, err)
	require.Equal(t, pgbenchAnswer{1234, 617.5, 1.618}, answer)
	_, err = parsePgbench(strings.Replace(printed, "failed transactions: 0", "failed transactions: 3", 1))
	require.ErrorContains(t, err, "3 transactions")
	_, err = parsePgbench("pgbench: error")
	require.ErrorContains(t, err, "tps")
}

// TestRedisBenchmark_IsParsed although the command's quotes, lines and commas are not escaped.
func TestRedisBenchmark_IsParsed(t *testing.T) {
	t.Parallel()
	printed := "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n" +
		"\"SET k {\"a\",\"b\":1}\n\",\"50000.5\",\"0.3\",\"0.1\",\"0.25\",\"0.4\",\"0.5\",\"2.1\"\n"
	rate, p50, p99, err := parseRedisBenchmark(printed)
	require.NoError(t, err)
	require.Equal(t, []float64{50000.5, 0.25, 0.5}, []float64{rate, p50, p99})
	for _, wrong := range []string{"", "ERR", printed[:len(printed)-30]} {
		_, _, _, err = parseRedisBenchmark(wrong)
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
	require.Equal(t, []command{{"evalsha", 20, 400}, {"xinfo|stream", 2, 5}},
		parseCommands("# Commandstats\r\ncmdstat_xinfo|stream:calls=2,usec=5,usec_per_call=2.50\r\ncmdstat_evalsha:calls=20,usec=400,usec_per_call=20.00\r\n"))
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
	b := &bench{cfg: config{page: filepath.Join(t.TempDir(), "BENCH.md"), offered: []float64{1, 10}}}
	var rows []offered
	text := `[{"offered": 100, "class": "new order", "sent_per_second": 99.5, "done_per_second": 90, "p50_ms": 2},
		{"offered": 1000, "class": "new order", "sent_per_second": 340, "done_per_second": 70, "p50_ms": 3},
		{"offered": 1000, "class": "list", "sent_per_second": 19, "done_per_second": 1, "p50_ms": 4}]`
	require.NoError(t, json.Unmarshal([]byte(text), &rows))
	s, err := overloadSection(b, rows, 100, "go run it")
	require.NoError(t, err)
	require.Contains(t, s.text, "3.4 × the limit at most")
	table := strings.Join(strings.Fields(s.tables[0].String()), " ")
	for _, want := range []string{"| class | sent/s | done/s |", "| new order | 340 | 70.0 |", "| list | 19.0 | 1.00 |"} {
		require.Contains(t, table, want)
	}
	drawn, err := os.ReadFile(s.plots[0].path)
	require.NoError(t, err)
	require.Contains(t, string(drawn), "new orders sent a second")
	require.Equal(t, map[float64]float64{100: 99.5, 1000: 340}, sentOrders(rows), "where the curves have their points")
}

func TestPlots_AreWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plots", "p.svg")
	require.NoError(t, drawBars(path, "t", "µs", []string{"a", "b"}, []bar{{"x", []float64{1, 2}}, {"y", []float64{0, 4}}}))
	require.NoError(t, drawLines(path, "t", "x", "ms", true, []line{{"a", plotter.XYs{{X: 1, Y: 1}, {X: 2, Y: 100}}}, {"none", nil}}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "</svg>")
}
