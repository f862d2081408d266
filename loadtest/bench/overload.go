package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// offered is what became of one class of requests at one rate, as loadtest/bench/overload keeps it.
type offered struct {
	Rate       float64 `json:"offered"`
	Class      string  `json:"class"`
	Done       float64 `json:"done_per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	TurnedAway int     `json:"turned_away"`
	Limited    int     `json:"rate_limited"`
	Failed     int     `json:"failed"`
	NoAnswer   int     `json:"no_answer"`
}

// overload draws the curve that loadtest/bench/overload measures.
func overload(ctx context.Context, b *bench) (section, error) {
	step := 2 * b.cfg.step
	cmd := exec.CommandContext(ctx, "go", "run", "./loadtest/bench/overload", "-rates", b.cfg.rates, "-for", step.String())
	cmd.Stdout, cmd.Stderr = b.out, os.Stderr
	cmd.Env = append(os.Environ(), "BASE_URL="+b.system.URL(), "BENCH_OUT="+b.bin)
	if err := cmd.Run(); err != nil {
		return section{}, cmp.Or(ctx.Err(), fmt.Errorf("loadtest/bench/overload: %w", err))
	}
	text, err := os.ReadFile(filepath.Join(b.bin, "overload.json"))
	if err != nil {
		return section{}, err
	}
	var rows []offered
	if err := json.Unmarshal(text, &rows); err != nil {
		return section{}, fmt.Errorf("read the curve: %w", err)
	}
	return overloadSection(b, rows, fmt.Sprintf("go run ./loadtest/bench/overload -rates %s -for %s", b.cfg.rates, step))
}

func overloadSection(b *bench, rows []offered, command string) (section, error) {
	s := section{title: "Latency against offered load", text: `Requests come at the offered rate, answered or not. Only new orders grow; the other classes come at a steady rate beside
them. Latencies are of what was answered with success.`}
	t := table{command: command, header: []string{"orders/s offered", "class", "done/s", "p50 ms", "p99 ms", "503 overloaded", "429", "other", "no answer"}}
	p50, p99 := map[string]plotter.XYs{}, map[string]plotter.XYs{}
	var classes []string
	for _, r := range rows {
		t.add(number(r.Rate), r.Class, number(r.Done), number(r.P50), number(r.P99), fmt.Sprint(r.TurnedAway), fmt.Sprint(r.Limited), fmt.Sprint(r.Failed), fmt.Sprint(r.NoAnswer))
		if !slices.Contains(classes, r.Class) {
			classes = append(classes, r.Class)
		}
		if r.Done > 0 { // nothing done has no latency
			p50[r.Class] = append(p50[r.Class], plotter.XY{X: r.Rate, Y: max(1, r.P50)})
			p99[r.Class] = append(p99[r.Class], plotter.XY{X: r.Rate, Y: max(1, r.P99)})
		}
	}
	s.tables = []table{t}
	for _, c := range []struct {
		name   string
		points map[string]plotter.XYs
	}{{"p50", p50}, {"p99", p99}} {
		var lines []line
		for _, class := range classes {
			lines = append(lines, line{class, c.points[class]})
		}
		path := b.plot("overload-" + c.name)
		s.plots = append(s.plots, picture{path, c.name + " against offered load, by class"})
		if err := drawLines(path, c.name+" against offered load", "new orders offered a second", "ms", true, lines); err != nil {
			return section{}, err
		}
	}
	return s, nil
}
