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
	found, err := b.interleave(ctx, 1, []trial{b.paced("first", b.cfg.window), {"between", b.fillUp}, b.paced("last", b.cfg.window)})
	return map[string]any{"pace": pace, "window": b.cfg.window, "more": found.Of("between", "answered").median, "found": found}, err
}

// paced has new orders placed below the limit.
func (b *bench) paced(name string, period time.Duration) trial {
	return trial{name, func(ctx context.Context) (sample, error) {
		return b.attack(ctx, name, b.shop.NewOrders, pace, period)
	}}
}

// fillUp places orders at the limit, and draws what they cost PostgreSQL by how many were kept.
func (b *bench) fillUp(ctx context.Context) (sample, error) {
	var kept int
	if err := b.db.QueryRow(ctx, "SELECT count(*) FROM orders").Scan(&kept); err != nil {
		return nil, err
	}
	more := 0.0
	var curve plotter.XYs
	for began := time.Now(); more < float64(b.cfg.more) && time.Since(began) < fillLimit; {
		between, err := b.attack(ctx, number(more)+" more orders", b.shop.NewOrders, 0, min(fillStep, b.cfg.window))
		if err != nil {
			return nil, err
		}
		more += between["answered"]
		curve = append(curve, plotter.XY{X: float64(kept) + more, Y: between["PostgreSQL"]})
	}
	b.plots["growth"] = drawLines("PostgreSQL's CPU per order, at the limit", "orders kept", "µs", false, []line{{"PostgreSQL", curve}})
	return sample{"answered": more}, nil
}
