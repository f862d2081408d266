package main

import (
	"context"
	"fmt"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// pace is the rate a second at which the service is measured below its limit.
const pace = 200

// load is one kind of requests to the service.
type load struct {
	name   string
	target func(context.Context, *bench, *shop.Shop) (vegeta.Targeter, error)
}

var loads = []load{
	{"order", plain((*shop.Shop).NewOrders)},
	{"order, one hot SKU", plain((*shop.Shop).HotOrders)},
	{"replay", plain((*shop.Shop).Replays)},
	{"card payment", unpaid},
}

func plain(target func(*shop.Shop) vegeta.Targeter) func(context.Context, *bench, *shop.Shop) (vegeta.Targeter, error) {
	return func(_ context.Context, _ *bench, s *shop.Shop) (vegeta.Targeter, error) { return target(s), nil }
}

// unpaid places the orders that are paid then. At the limit, the measurement ends when all are
// paid.
func unpaid(ctx context.Context, b *bench, s *shop.Shop) (vegeta.Targeter, error) {
	placed, err := s.Place(ctx, max(20, int(2*pace*b.cfg.step.Seconds())))
	return s.PaymentsOf(placed), err
}

// orders measures the service through nginx, and its servers without it.
func orders(ctx context.Context, b *bench) (section, error) {
	s, err := b.openShop(ctx)
	if err != nil {
		return section{}, err
	}
	floor, err := b.prepareFloor(ctx)
	if err != nil {
		return section{}, err
	}
	if _, err := b.attack(ctx, "warm up", s.NewOrders(), 0, b.cfg.step); err != nil {
		return section{}, err
	}
	trials := floor
	for _, l := range loads {
		for _, rate := range []int{0, pace} {
			trials = append(trials, trial{at(l.name, rate), func(ctx context.Context) (sample, error) {
				target, err := l.target(ctx, b, s)
				if err != nil {
					return nil, err
				}
				return b.attack(ctx, at(l.name, rate), target, rate, b.cfg.step)
			}})
		}
	}
	found, err := b.interleave(ctx, trials, "rate", "replicas", "PostgreSQL", "Redis")
	if err != nil {
		return section{}, err
	}
	return ordersSection(b, found)
}

func at(name string, rate int) string {
	if rate == 0 {
		return name + ", at the limit"
	}
	return fmt.Sprintf("%s, %d/s", name, rate)
}

func ordersSection(b *bench, found results) (section, error) {
	s := section{title: "The service", text: fmt.Sprintf(`Two replicas, nginx, PostgreSQL and Redis of `+"`stack up --direct`"+`, and the provider simulator; %d SKUs, 50 customers, one
item in an order. At the limit, %d clients send their next request when the last is answered; at %d/s requests come at
that rate, answered or not. CPU has everything: also the relay, the consumers of events and PostgreSQL's writer and
vacuum. pgbench sends the statements of one order in the same two round trips, by %d clients, to a database without relay
and consumers ([order.sql](bench/order.sql)); redis-benchmark the two commands, with a record that the service has
written.`, b.cfg.skus, b.cfg.clients, pace, pgbenchClients)}
	t := table{command: ordersCommand, header: []string{"requests", "answered/s", "p50 ms", "p99 ms"}}
	for _, tier := range tiers {
		t.header = append(t.header, tier.name+" µs")
	}
	legend := make([]string, len(tiers))
	var bars []bar
	for _, l := range loads {
		for _, rate := range []int{0, pace} {
			name := at(l.name, rate)
			row := []string{name, found.of(name, "rate").String(), found.of(name, "p50").String(), found.of(name, "p99").String()}
			group := bar{name: l.name}
			for i, tier := range tiers {
				cost := found.of(name, tier.name)
				row, legend[i], group.values = append(row, cost.String()), tier.name, append(group.values, cost.median)
			}
			t.add(row...)
			if rate == 0 {
				bars = append(bars, group)
			}
		}
	}
	s.tables = []table{t, floorTable(found)}
	path := b.plot("orders")
	s.plots = []picture{{path, "CPU per request at the limit, by server"}}
	return s, drawBars(path, "CPU per request", "µs", legend, bars)
}

const ordersCommand = "go run ./loadtest/bench -parts orders"
