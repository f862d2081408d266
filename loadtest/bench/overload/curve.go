package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/shop"
)

// rest lets the system finish one rate before the next.
const rest = 3 * time.Second

// patience is how long a request may take: longer than the service does under any load that is
// measured.
const patience = 20 * time.Second

// row is what became of one class at one rate. Latencies are in milliseconds.
type row struct {
	Offered    int     `json:"offered"` // new orders a second
	Class      string  `json:"class"`
	Sent       float64 `json:"sent_per_second"` // at high rates fewer than the class's rate
	Done       float64 `json:"done_per_second"`
	TurnedAway int     `json:"turned_away"` // 503 overloaded
	Limited    int     `json:"rate_limited"`
	Failed     int     `json:"failed"` // any other answer
	Codes      codes   `json:"failed_codes,omitempty"`
	NoAnswer   int     `json:"no_answer"`
	P50        float64 `json:"p50_ms"` // of what was done
	P99        float64 `json:"p99_ms"`
	AwayP50    float64 `json:"turned_away_p50_ms"`
	AwayP99    float64 `json:"turned_away_p99_ms"`
	Cores      float64 `json:"client_cores"` // that the load of all classes took from the machine

	done, away vegeta.LatencyMetrics
}

// codes count answers by their status and their problem's code.
type codes map[string]int

func (r *row) add(result *vegeta.Result) {
	r.Sent++
	switch {
	case result.Code/100 == 2:
		r.Done++
		r.done.Add(result.Latency)
	case result.Code == http.StatusServiceUnavailable && codeOf(result.Body) == "overloaded":
		r.TurnedAway++
		r.away.Add(result.Latency)
	case result.Code == http.StatusTooManyRequests:
		r.Limited++
	case result.Code == 0:
		r.NoAnswer++
	default:
		r.Failed++
		r.Codes[fmt.Sprint(result.Code, " ", codeOf(result.Body))]++
	}
}

func codeOf(body []byte) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // another shape has no code
	return problem.Code
}

func (r *row) close(step time.Duration) {
	r.Sent /= step.Seconds()
	r.Done /= step.Seconds()
	if r.Done > 0 {
		r.P50, r.P99 = ms(r.done.Quantile(0.5)), ms(r.done.Quantile(0.99))
	}
	if r.TurnedAway > 0 {
		r.AwayP50, r.AwayP99 = ms(r.away.Quantile(0.5)), ms(r.away.Quantile(0.99))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// curve drives one rate after the other and prints a row for each class.
func curve(ctx context.Context, cfg config, s *shop.Shop, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "offered/s\tclass\tsent/s\tdone/s\tp50 ms\tp99 ms\tturned away\tp50 ms\tp99 ms\t429\tother\tno answer\t")
	var rows []*row
	for _, rate := range cfg.rates {
		for _, r := range drive(cfg, s, rate) {
			rows = append(rows, r)
			fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%d\t%d\t%d\t\n", r.Offered, r.Class, r.Sent, r.Done, r.P50, r.P99,
				r.TurnedAway, r.AwayP50, r.AwayP99, r.Limited, r.Failed, r.NoAnswer)
		}
		_ = table.Flush() // out is a terminal
		for _, r := range rows[len(rows)-len(classes):] {
			if r.Failed > 0 {
				fmt.Fprintf(out, "other answers to %s: %v\n", r.Class, r.Codes)
			}
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return write(cfg, rows, out)
}

// drive sends all classes side by side.
func drive(cfg config, s *shop.Shop, rate int) []*row {
	rows := make([]*row, len(classes))
	var group sync.WaitGroup
	client := shop.Client(patience)
	defer client.CloseIdleConnections()
	began, used := time.Now(), usedCPU()
	for i, c := range classes {
		rows[i] = &row{Offered: rate, Class: c.name, Codes: codes{}}
		pace := vegeta.Rate{Freq: c.rate, Per: time.Second}
		if c.rate == 0 {
			pace.Freq = rate
		}
		group.Go(func() {
			for result := range vegeta.NewAttacker(vegeta.Client(client)).Attack(c.target(s), pace, cfg.step, c.name) {
				rows[i].add(result)
			}
			rows[i].close(cfg.step)
		})
	}
	group.Wait()
	cores := (usedCPU() - used).Seconds() / time.Since(began).Seconds()
	for _, r := range rows {
		r.Cores = cores
	}
	return rows
}

// usedCPU is the CPU time of this process.
func usedCPU() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // fails only for another argument
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
