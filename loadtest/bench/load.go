package main

import (
	"context"
	"fmt"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// patience is how long a request may take: longer than the service does under any load that is
// measured.
const patience = 20 * time.Second

// attack sends requests to the service: at a rate a second, or with rate 0 as many as so many
// clients get answered. It returns the rate, latencies in ms, and the CPU time that each tier used
// for each request that was answered with success.
func (b *bench) attack(ctx context.Context, what string, target vegeta.Targeter, rate int, period time.Duration) (sample, error) {
	client := shop.Client(patience)
	defer client.CloseIdleConnections()
	options := []func(*vegeta.Attacker){vegeta.Client(client)}
	if rate == 0 {
		options = append(options, vegeta.Workers(uint64(b.cfg.clients)), vegeta.MaxWorkers(uint64(b.cfg.clients)))
	}
	attacker := vegeta.NewAttacker(options...)
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var m vegeta.Metrics
	cost, err := b.system.costing(func() (int, error) {
		for result := range attacker.Attack(target, vegeta.Rate{Freq: rate, Per: time.Second}, period, what) {
			if result.Error != vegeta.ErrNoTargets.Error() { // that is the end, and no request
				m.Add(result)
			}
		}
		m.Close()
		return int(m.Success * float64(m.Requests)), ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if m.Success < 1 {
		b.unexpected = append(b.unexpected, fmt.Sprintf("%s: %v %.200v", what, m.StatusCodes, m.Errors))
	}
	cost["rate"], cost["p50"], cost["p99"] = m.Throughput, ms(m.Latencies.P50), ms(m.Latencies.P99)
	cost["answered"] = m.Success * float64(m.Requests)
	return cost, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
