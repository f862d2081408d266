package main

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// fillStep is how long is measured for one point of the curve, at the limit.
	fillStep = 5 * time.Second
	// fillLimit bounds the orders between the two windows.
	fillLimit = 6 * time.Minute
)

// growth compares what an order costs PostgreSQL in the first minute with what it costs when many
// thousand are kept.
func growth(ctx context.Context, b *bench) (section, error) {
	s, err := b.openShop(ctx)
	if err != nil {
		return section{}, err
	}
	first, err := b.attack(ctx, "first orders", s.NewOrders(), pace, b.cfg.window)
	if err != nil {
		return section{}, err
	}
	kept := float64(b.cfg.skus) + first["answered"]
	fmt.Fprintf(b.out, "  first %s: PostgreSQL %s µs an order\n", b.cfg.window, number(first["PostgreSQL"]))
	curve, more, err := b.fill(ctx, s, kept)
	if err != nil {
		return section{}, err
	}
	last, err := b.attack(ctx, "last orders", s.NewOrders(), pace, b.cfg.window)
	if err != nil {
		return section{}, err
	}
	return growthSection(b, first, last, more, curve)
}

// fill places orders at the limit, and returns what they cost PostgreSQL by how many were kept.
func (b *bench) fill(ctx context.Context, s *shop.Shop, kept float64) (curve plotter.XYs, more float64, err error) {
	began := time.Now()
	for more < float64(b.cfg.more) && time.Since(began) < fillLimit {
		found, err := b.attack(ctx, "orders between", s.NewOrders(), 0, min(fillStep, b.cfg.window))
		if err != nil {
			return nil, 0, err
		}
		more += found["answered"]
		curve = append(curve, plotter.XY{X: kept + more, Y: found["PostgreSQL"]})
		fmt.Fprintf(b.out, "  %s more orders: PostgreSQL %s µs an order\n", number(more), number(found["PostgreSQL"]))
	}
	return curve, more, nil
}

func growthSection(b *bench, first, last sample, more float64, curve plotter.XYs) (section, error) {
	s := section{title: "Growth", text: fmt.Sprintf(`New orders at %d/s for %s on an empty database, then %s more at the limit, then again %d/s for %s. The keys of all of them
are kept meanwhile. The curve is of the orders between, at the limit.`, pace, b.cfg.window, number(more), pace, b.cfg.window)}
	t := table{command: "go run ./loadtest/bench -parts growth", header: []string{"orders", "PostgreSQL µs an order", "Redis µs", "replicas µs", "p50 ms", "p99 ms"}}
	for _, row := range []struct {
		name string
		sample
	}{{"first " + b.cfg.window.String(), first}, {"after " + number(more) + " more", last}} {
		t.add(row.name, number(row.sample["PostgreSQL"]), number(row.sample["Redis"]), number(row.sample["replicas"]), number(row.sample["p50"]), number(row.sample["p99"]))
	}
	t.add("ratio", number(last["PostgreSQL"]/max(1, first["PostgreSQL"])), number(last["Redis"]/max(1, first["Redis"])), number(last["replicas"]/max(1, first["replicas"])), "", "")
	s.tables = []table{t}
	path := b.plot("growth")
	s.plots = []picture{{path, "PostgreSQL's CPU per order by orders kept"}}
	return s, drawLines(path, "PostgreSQL's CPU per order, at the limit", "orders kept", "µs", false, []line{{"PostgreSQL", curve}})
}
