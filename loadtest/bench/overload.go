package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"
)

// offered is what became of one class of requests at one rate, as loadtest/bench/overload keeps it.
type offered struct {
	Rate       float64 `json:"offered"`
	Class      string  `json:"class"`
	Sent       float64 `json:"sent_per_second"`
	Done       float64 `json:"done_per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	TurnedAway int     `json:"turned_away"`
	Limited    int     `json:"rate_limited"`
	Failed     int     `json:"failed"`
	NoAnswer   int     `json:"no_answer"`
	Cores      float64 `json:"client_cores"` // that the load generator used, for all classes together
}

// overload draws the curve that loadtest/bench/overload measures, at multiples of the limit.
func overload(ctx context.Context, b *bench) (section, error) {
	step := 2 * b.cfg.step
	limit, err := b.limit(ctx, step)
	if err != nil {
		return section{}, err
	}
	rates := make([]string, len(b.cfg.offered))
	for i, multiple := range b.cfg.offered {
		rates[i] = fmt.Sprintf("%.0f", max(1, multiple*limit))
	}
	args := []string{"-rates", strings.Join(rates, ","), "-for", step.String()}
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./loadtest/bench/overload"}, args...)...)
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
	return overloadSection(b, rows, limit, "go run ./loadtest/bench/overload "+strings.Join(args, " "))
}

// limit is how many orders a second are done when each client sends its next one at once.
func (b *bench) limit(ctx context.Context, period time.Duration) (float64, error) {
	s, err := b.openShop(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := b.attack(ctx, "warm up", s.NewOrders(), 0, period); err != nil {
		return 0, err
	}
	found, err := b.attack(ctx, "the limit", s.NewOrders(), 0, period)
	fmt.Fprintf(b.out, "  limit: %s orders/s\n", number(found["rate"]))
	return found["rate"], err
}

func overloadSection(b *bench, rows []offered, limit float64, command string) (section, error) {
	sent := sentOrders(rows)
	s := section{title: "Latency against offered load", text: fmt.Sprintf(`New orders are offered at up to %.0f × the limit of %s orders/s, which %d clients reached just before, whether those before
them were answered or not. The load generator may not manage to send what is offered: it sent %.1f × the limit at most.
Only new orders grow; the other classes come at a steady rate beside them, and sent/s is of the row's class. Latencies are
of what was answered with success. The load generator takes its share of the same cores, as the table says, and so do the
refusals of nginx and the replicas: both reduce the rate of completed requests.`,
		slices.Max(b.cfg.offered), number(limit), b.cfg.clients, slices.Max(slices.Collect(maps.Values(sent)))/limit)}
	t := table{command: command, header: []string{"orders/s offered", "client's cores", "class", "sent/s", "done/s", "p50 ms", "p99 ms", "503 overloaded", "429", "other", "no answer"}}
	p50, p99 := map[string]plotter.XYs{}, map[string]plotter.XYs{}
	var classes []string
	for _, r := range rows {
		t.add(number(r.Rate), fmt.Sprintf("%.2f", r.Cores), r.Class, number(r.Sent), number(r.Done), number(r.P50), number(r.P99), fmt.Sprint(r.TurnedAway), fmt.Sprint(r.Limited), fmt.Sprint(r.Failed), fmt.Sprint(r.NoAnswer))
		if !slices.Contains(classes, r.Class) {
			classes = append(classes, r.Class)
		}
		if r.Done > 0 { // nothing done has no latency
			p50[r.Class] = append(p50[r.Class], plotter.XY{X: sent[r.Rate], Y: max(1, r.P50)})
			p99[r.Class] = append(p99[r.Class], plotter.XY{X: sent[r.Rate], Y: max(1, r.P99)})
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
		s.plots = append(s.plots, picture{path, c.name + " against the new orders that were sent, by class"})
		if err := drawLines(path, c.name+" against load", "new orders sent a second", "ms", true, lines); err != nil {
			return section{}, err
		}
	}
	return s, nil
}

// sentOrders is how many new orders a second were sent at each offered rate.
func sentOrders(rows []offered) map[float64]float64 {
	sent := map[float64]float64{}
	for _, r := range rows {
		if r.Class == "new order" {
			sent[r.Rate] = r.Sent
		}
	}
	return sent
}
