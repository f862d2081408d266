package main

import (
	"context"
	"fmt"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// loads are the kinds of requests to the service.
var loads = []string{"order", "order, one hot SKU", "replay", "card payment"}

// target sends one kind of requests. What is paid is placed before: at the limit, the measurement
// ends when all are paid.
func (b *bench) target(ctx context.Context, load string) (vegeta.Targeter, error) {
	switch load {
	case loads[0]:
		return b.shop.NewOrders, nil
	case loads[1]:
		return b.shop.HotOrders, nil
	case loads[2]:
		return b.shop.Replays, nil
	}
	placed, err := b.shop.Place(ctx, max(20, int(2*pace*b.cfg.step.Seconds())))
	return b.shop.PaymentsOf(placed), err
}

// orders measures the service through nginx, and its servers without it.
func orders(ctx context.Context, b *bench) (map[string]any, error) {
	trials, err := b.prepareFloor(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.attack(ctx, "warm up", b.shop.NewOrders, 0, b.cfg.step); err != nil {
		return nil, err
	}
	var requests []string
	for _, load := range loads {
		for _, rate := range []int{0, pace} {
			name := at(load, rate)
			requests = append(requests, name)
			trials = append(trials, trial{name, func(ctx context.Context) (sample, error) {
				target, err := b.target(ctx, load)
				if err != nil {
					return nil, err
				}
				return b.attack(ctx, name, target, rate, b.cfg.step)
			}})
		}
	}
	found, err := b.interleave(ctx, b.cfg.rounds, trials, "rate", "replicas", "PostgreSQL", "Redis")
	var bars []bar
	for _, load := range loads {
		group := bar{name: load}
		for _, tier := range tiers {
			group.values = append(group.values, found.Of(at(load, 0), tier).median)
		}
		bars = append(bars, group)
	}
	b.plots["orders"] = drawBars("CPU per request", tiers, bars)
	return map[string]any{"found": found, "requests": requests, "tiers": tiers, "skus": b.cfg.skus, "clients": clients, "pace": pace,
		"pgbenchClients": pgbenchClients}, err
}

func at(load string, rate int) string {
	if rate == 0 {
		return load + ", at the limit"
	}
	return fmt.Sprintf("%s, %d/s", load, rate)
}
