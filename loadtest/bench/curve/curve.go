// Package curve measures latency against offered load, with an open model, for each class of
// requests.
package curve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// SKUs is how many products are bought.
	SKUs = 200
	// Of who buys, and of the orders that are repeated, looked up and paid.
	customers, repeatable = 50, 1000
	// rest lets the system finish one rate before the next.
	rest = 3 * time.Second
	// patience is how long a request may take: longer than the service does under any load that is
	// measured.
	patience = 20 * time.Second
)

// NewOrder is the class whose rate is the offered one. What should get through in spite of it comes
// at a steady rate.
const NewOrder = "new order"

// Open prepares what is bought at a service.
func Open(ctx context.Context, baseURL, apiKey string) (*shop.Shop, error) {
	return shop.Open(ctx, shop.Config{BaseURL: baseURL, APIKey: apiKey, Name: "overload", SKUs: SKUs, Customers: customers, Orders: repeatable})
}

// Row is what became of one class at one rate. Latencies are in milliseconds.
type Row struct {
	Offered    int // new orders a second
	Class      string
	Sent       float64 // a second; at high rates fewer than the class's rate
	Done       float64 // a second
	TurnedAway int     // 503 overloaded
	Limited    int     // 429
	Failed     int     // any other answer
	NoAnswer   int
	P50, P99   float64 // of what was done
	Cores      float64 // that the load of all classes took from the machine

	codes            map[string]int // of the failed: status and the problem's code
	awayP50, awayP99 float64        // of what was turned away
	done, away       vegeta.LatencyMetrics
}

func (r *Row) add(result *vegeta.Result) {
	r.Sent++
	code := shop.ProblemCode(result.Body)
	switch {
	case result.Code/100 == 2:
		r.Done++
		r.done.Add(result.Latency)
	case result.Code == http.StatusServiceUnavailable && code == "overloaded":
		r.TurnedAway++
		r.away.Add(result.Latency)
	case result.Code == http.StatusTooManyRequests:
		r.Limited++
	case result.Code == 0:
		r.NoAnswer++
	default:
		r.Failed++
		r.codes[fmt.Sprint(result.Code, " ", code)]++
	}
}

func (r *Row) close(step time.Duration) {
	r.Sent /= step.Seconds()
	r.Done /= step.Seconds()
	quantile := func(of *vegeta.LatencyMetrics, q float64) float64 { return report.Milliseconds(of.Quantile(q)) }
	if r.Done > 0 {
		r.P50, r.P99 = quantile(&r.done, 0.5), quantile(&r.done, 0.99)
	}
	if r.TurnedAway > 0 {
		r.awayP50, r.awayP99 = quantile(&r.away, 0.5), quantile(&r.away, 0.99)
	}
}

// Measure drives one rate of new orders after the other, for a step each. It prints and returns a
// row for each class.
func Measure(ctx context.Context, s *shop.Shop, rates []int, step time.Duration, out io.Writer) (rows []*Row, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "offered/s\tclass\tsent/s\tdone/s\tp50 ms\tp99 ms\tturned away\tp50 ms\tp99 ms\t429\tother\tno answer\t")
	for _, rate := range rates {
		driven := drive(s, rate, step)
		rows = append(rows, driven...)
		for _, r := range driven {
			fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%d\t%d\t%d\t\n", r.Offered, r.Class, r.Sent, r.Done, r.P50, r.P99,
				r.TurnedAway, r.awayP50, r.awayP99, r.Limited, r.Failed, r.NoAnswer)
		}
		_ = table.Flush() // out is a terminal
		for _, r := range driven {
			if r.Failed > 0 {
				fmt.Fprintf(out, "other answers to %s: %v\n", r.Class, r.codes)
			}
		}
		if err := wait.Pause(ctx, rest); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// drive sends all classes side by side.
func drive(s *shop.Shop, rate int, step time.Duration) (rows []*Row) {
	var group sync.WaitGroup
	client := shop.Client(patience)
	defer client.CloseIdleConnections()
	began, used := time.Now(), usedCPU()
	for _, class := range []struct {
		name   string
		rate   int // a second
		target vegeta.Targeter
	}{
		{NewOrder, rate, s.NewOrders},
		{"replay", 50, s.Replays},
		{"key look-up", 20, s.LookUps},
		{"card payment", 20, s.Payments},
		{"list", 20, s.Lists},
	} {
		r := &Row{Offered: rate, Class: class.name, codes: map[string]int{}}
		rows = append(rows, r)
		group.Go(func() {
			for result := range vegeta.NewAttacker(vegeta.Client(client)).Attack(class.target, vegeta.Rate{Freq: class.rate, Per: time.Second}, step, class.name) {
				r.add(result)
			}
			r.close(step)
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
