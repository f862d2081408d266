package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	stackDir = ".stack-bench"
	// The offsets that are tried, which are above the ports that Linux gives to clients.
	firstOffset, lastOffset, offsetStep = 6600, 9000, 100
	// downTimeout bounds the removal of the stack, also after Ctrl-C.
	downTimeout = time.Minute
	apiKey      = "sk_test_demo"
	customers   = 50
)

// system is a stack of this run alone.
type system struct{ *stack.Stack }

func (b *bench) up(ctx context.Context) error {
	fmt.Fprintln(b.out, "bringing a stack up")
	st, err := newStack()
	if err != nil {
		return err
	}
	b.system = &system{st}
	if err := st.Up(ctx); err != nil {
		return fmt.Errorf("bring the stack up: %w", err)
	}
	return nil
}

func (b *bench) down(ctx context.Context) error {
	if b.system == nil {
		return nil
	}
	fmt.Fprintln(b.out, "taking the stack down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	err := b.system.Down(ctx, false)
	b.system = nil
	return err
}

// newStack is one without the fault proxy, which costs as much as a replica, on ports that are
// free.
func newStack() (*stack.Stack, error) {
	var taken error
	for offset := firstOffset; offset <= lastOffset; offset += offsetStep {
		st, err := stack.New(stack.Options{Dir: stackDir, Driver: stack.Native, Direct: true, PortOffset: offset, Out: io.Discard,
			Env: []string{"RATE_LIMIT=1000000", "IDEMPOTENCY_ACCOUNT_KEYS=100000000", "IDEMPOTENCY_ACCOUNT_BYTES=100000000000"}}) // the whole load is one account's
		if err != nil {
			return nil, err
		}
		if st.Claimed() {
			return nil, fmt.Errorf("another run is on, or was killed; then: go run ./cmd/stack down --dir %s", stackDir)
		}
		if taken = checkPorts(st); taken == nil {
			return st, nil
		}
	}
	return nil, taken
}

func checkPorts(st *stack.Stack) error {
	for _, service := range st.Services() {
		for _, port := range st.Ports(service) {
			if err := localserver.CheckPort(port); err != nil {
				return err
			}
		}
	}
	return nil
}

// tiers are the servers whose CPU time is told apart.
var tiers = []struct {
	name     string
	services []string
}{
	{"replicas", stack.Replicas},
	{"PostgreSQL", []string{stack.Postgres}},
	{"Redis", []string{stack.Redis}},
	{"nginx", []string{stack.Nginx}},
	{"provider", []string{stack.PSP}},
}

// costing does something n times, and returns the CPU time in µs that each tier used for each.
func (s *system) costing(do func() (n int, err error)) (sample, error) {
	pids := map[string][]int{}
	for _, tier := range tiers {
		for _, service := range tier.services {
			pids[tier.name] = append(pids[tier.name], s.State.Service(service).Process.PID)
		}
	}
	return costing(pids, do)
}

// costing does something n times, and returns the CPU time in µs that each group of processes used
// for each.
func costing(pids map[string][]int, do func() (n int, err error)) (sample, error) {
	before, err := cpuTimes(pids)
	if err != nil {
		return nil, err
	}
	n, err := do()
	if err != nil {
		return nil, err
	}
	after, err := cpuTimes(pids)
	if err != nil {
		return nil, err
	}
	cost := sample{}
	for name, used := range after {
		cost[name] = perRequest(used-before[name], n)
	}
	return cost, nil
}

// perRequest is in µs.
func perRequest(used time.Duration, n int) float64 {
	return float64(used.Microseconds()) / float64(max(n, 1))
}

// cpuTimes is what each group of processes has used since it started.
func cpuTimes(pids map[string][]int) (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for name, group := range pids {
		for _, pid := range group {
			d, err := localserver.CPUTime(pid)
			if err != nil {
				return nil, err
			}
			used[name] += d
		}
	}
	return used, nil
}

func (s *system) databaseURL() string { return stack.PostgresURL(s.PostgresPrimary()) }

// openShop prepares what is bought. In a quick run it is little.
func (b *bench) openShop(ctx context.Context) (*shop.Shop, error) {
	return shop.Open(ctx, shop.Config{BaseURL: b.system.URL(), APIKey: apiKey, Name: "bench", SKUs: b.cfg.skus, Customers: customers,
		Orders: b.cfg.skus})
}
