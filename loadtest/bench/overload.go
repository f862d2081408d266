package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/oncepay/oncepay/loadtest/bench/curve"
)

// overload draws the curve of loadtest/bench/overload, at multiples of the limit: how many orders a
// second are done when each client sends its next one at once.
func overload(ctx context.Context, b *bench) (map[string]any, error) {
	step := 2 * b.cfg.step
	if _, err := b.attack(ctx, "warm up", b.shop.NewOrders, 0, step); err != nil {
		return nil, err
	}
	limit, err := b.attack(ctx, "the limit", b.shop.NewOrders, 0, step)
	if err != nil {
		return nil, err
	}
	var rates []int
	again := command + "/overload -for " + step.String() + " -rates "
	for _, multiple := range b.cfg.offered {
		rates = append(rates, max(1, int(math.Round(multiple*limit["rate"]))))
		again += strconv.Itoa(rates[len(rates)-1]) + ","
	}
	load, err := curve.Open(ctx, b.stack.URL(), apiKey)
	if err != nil {
		return nil, err
	}
	rows, err := curve.Measure(ctx, load, rates, step, b.out)
	return b.overloadFound(rows, limit["rate"], strings.TrimSuffix(again, ",")), err
}

func (b *bench) overloadFound(rows []*curve.Row, limit float64, command string) map[string]any {
	sent, most := map[int]float64{}, 0.0 // new orders a second that were sent, by the rate that was offered
	for _, r := range rows {
		if r.Class == curve.NewOrder {
			sent[r.Offered], most = r.Sent, max(most, r.Sent)
		}
	}
	var p50, p99 []line // of each class
	for _, r := range rows {
		class := slices.IndexFunc(p50, func(l line) bool { return l.name == r.Class })
		if class < 0 {
			class, p50, p99 = len(p50), append(p50, line{name: r.Class}), append(p99, line{name: r.Class})
		}
		if r.Done > 0 { // nothing done has no latency
			p50[class].points = append(p50[class].points, plotter.XY{X: sent[r.Offered], Y: max(1, r.P50)})
			p99[class].points = append(p99[class].points, plotter.XY{X: sent[r.Offered], Y: max(1, r.P99)})
		}
	}
	b.plots["overload-p50"] = drawLines("p50 against load", "new orders sent a second", "ms", true, p50)
	b.plots["overload-p99"] = drawLines("p99 against load", "new orders sent a second", "ms", true, p99)
	return map[string]any{"rows": rows, "limit": limit, "most": slices.Max(b.cfg.offered), "sent": most / limit, "clients": b.cfg.clients, "command": command}
}
