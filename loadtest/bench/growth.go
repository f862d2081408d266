package main

import (
	"context"
	"time"

	"gonum.org/v1/plot/plotter"
)

const (
	// fillStep is how long is measured for one point of the curve, at the limit.
	fillStep = 5 * time.Second
	// fillLimit bounds the orders between the two windows.
	fillLimit = 6 * time.Minute
)

// growth compares what an order costs PostgreSQL in the first minute with what it costs when many
// thousand are kept.
func growth(ctx context.Context, b *bench) (map[string]any, error) {
	first, err := b.attack(ctx, "first orders", b.shop.NewOrders, pace, b.cfg.window)
	if err != nil {
		return nil, err
	}
	kept, more := float64(b.cfg.skus)+first["answered"], 0.0
	var curve plotter.XYs // what orders cost PostgreSQL, by how many were kept
	for began := time.Now(); more < float64(b.cfg.more) && time.Since(began) < fillLimit; {
		between, err := b.attack(ctx, number(more)+" more orders", b.shop.NewOrders, 0, min(fillStep, b.cfg.window))
		if err != nil {
			return nil, err
		}
		more += between["answered"]
		curve = append(curve, plotter.XY{X: kept + more, Y: between["PostgreSQL"]})
	}
	last, err := b.attack(ctx, "last orders", b.shop.NewOrders, pace, b.cfg.window)
	ratio := sample{}
	for name := range last {
		ratio[name] = last[name] / max(1, first[name])
	}
	b.plots["growth"] = drawLines("PostgreSQL's CPU per order, at the limit", "orders kept", "µs", false, []line{{"PostgreSQL", curve}})
	return map[string]any{"pace": pace, "window": b.cfg.window, "more": more, "first": first, "last": last, "ratio": ratio}, err
}
