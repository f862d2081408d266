package main

import (
	"context"
	"fmt"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// orders measures the service through nginx.
func orders(ctx context.Context, b *bench) (map[string]any, error) {
	if _, err := b.attack(ctx, "warm up", b.shop.NewOrders, 0, b.cfg.step); err != nil {
		return nil, err
	}
	loads := []struct {
		name   string
		target vegeta.Targeter // nil: payments
	}{{"order", b.shop.NewOrders}, {"order, one hot SKU", b.shop.HotOrders}, {"replay", b.shop.Replays}, {"card payment", nil}}
	var names, requests []string
	var trials []trial
	for _, load := range loads {
		names = append(names, load.name)
		for _, rate := range []int{0, pace} {
			name := at(load.name, rate)
			requests = append(requests, name)
			trials = append(trials, trial{name, func(ctx context.Context) (sample, error) {
				target := load.target
				if target == nil { // at the limit, the measurement ends when all that are placed before are paid
					placed, err := b.shop.Place(ctx, max(20, int(2*pace*b.cfg.step.Seconds())))
					if err != nil {
						return nil, err
					}
					target = b.shop.PaymentsOf(placed)
				}
				return b.attack(ctx, name, target, rate, b.cfg.step)
			}})
		}
	}
	found, err := b.interleave(ctx, b.cfg.rounds, trials)
	b.plots["orders"] = drawBars("CPU per request", names, tiers, func(load, tier int) float64 {
		return found.Of(at(names[load], 0), tiers[tier]).median
	})
	return map[string]any{"found": found, "requests": requests, "tiers": tiers, "skus": b.cfg.skus, "clients": clients, "pace": pace}, err
}

func at(load string, rate int) string {
	if rate == 0 {
		return load + ", at the limit"
	}
	return fmt.Sprintf("%s, %d/s", load, rate)
}
