package main

import (
	"context"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"gonum.org/v1/plot/plotter"

	"github.com/oncepay/oncepay/internal/wait"
)

// rest lets the system finish one rate before the next.
const rest = 3 * time.Second

// class is requests that come beside the new orders, whose rate is the offered one. What should get
// through in spite of them comes at a steady rate.
type class struct {
	name   string
	rate   int // a second
	target vegeta.Targeter
}

// row is what became of one class at one rate of new orders.
type row struct {
	Offered float64 // new orders a second
	Class   string
	Cores   float64 // that the load of all classes took from the machine
	Found   sample
}

// overload measures latency against offered load with an open model, for each class of requests, at
// multiples of the limit.
func overload(ctx context.Context, b *bench) (map[string]any, error) {
	// The limit is how many orders a second are done when each client sends its next one at once.
	if _, err := b.attack(ctx, "warm up", b.shop.NewOrders, 0, 2*b.cfg.step); err != nil {
		return nil, err
	}
	atLimit, err := b.attack(ctx, "the limit", b.shop.NewOrders, 0, 2*b.cfg.step)
	if err != nil {
		return nil, err
	}
	limit := atLimit["rate"]
	var rates [][]row
	for _, multiple := range b.cfg.offered {
		if err := wait.Pause(ctx, rest); err != nil {
			return nil, err
		}
		rates = append(rates, b.drive(ctx, max(1, int(math.Round(multiple*limit)))))
	}
	return b.overloadFound(rates, limit), ctx.Err()
}

// drive sends all classes side by side. A rate ends on time, even if not all that is offered was
// sent until then.
func (b *bench) drive(ctx context.Context, offered int) []row {
	classes := []class{{"new order", offered, b.shop.NewOrders}, {"replay", 50, b.shop.Replays}, {"key look-up", 20, b.shop.LookUps},
		{"card payment", 20, b.shop.Payments}, {"list", 20, b.shop.Lists}}
	rows := make([]row, len(classes))
	began, used := time.Now(), usedCPU()
	var group sync.WaitGroup
	for i, c := range classes {
		group.Go(func() { rows[i] = row{float64(offered), c.name, 0, send(ctx, c.target, c.rate, 2*b.cfg.step)} })
	}
	group.Wait()
	for i := range rows {
		rows[i].Cores = (usedCPU() - used).Seconds() / time.Since(began).Seconds()
	}
	return rows
}

// usedCPU is the CPU time of this process.
func usedCPU() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails only for another argument
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// overloadFound has the rows of each rate, which begin with the new orders.
func (b *bench) overloadFound(rates [][]row, limit float64) map[string]any {
	most := 0.0 // new orders sent a second
	for _, figure := range []string{"p50", "p99"} {
		var curves []any
		for i, class := range rates[0] {
			var points plotter.XYs
			for _, rows := range rates {
				sent := rows[0].Found["sent"]
				most = max(most, sent)
				if rows[i].Found["answered"] > 0 { // nothing done has no latency
					points = append(points, plotter.XY{X: sent, Y: max(1, rows[i].Found[figure])})
				}
			}
			if len(points) > 0 {
				curves = append(curves, class.Class, points)
			}
		}
		b.plots["overload-"+figure] = drawLines(figure+" against load", "new orders sent a second", "ms", curves...)
	}
	return map[string]any{"rates": rates, "limit": limit, "most": slices.Max(b.cfg.offered), "sent": most / limit, "clients": clients}
}
