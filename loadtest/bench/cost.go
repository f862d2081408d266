package main

import (
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
)

// tiers are the servers whose CPU time is told apart, in the order of the tables.
var tiers = []string{"replicas", "PostgreSQL", "Redis", "nginx", "provider"}

// costing does something n times, and returns the figures of that together with the CPU time in µs
// that each tier used for each.
func (b *bench) costing(do func() (n int, found sample, err error)) (sample, error) {
	pids := map[string][]int{}
	for i, services := range [][]string{stack.Replicas, {stack.Postgres}, {stack.Redis}, {stack.Nginx}, {stack.PSP}} {
		for _, service := range services {
			pids[tiers[i]] = append(pids[tiers[i]], b.stack.PID(service))
		}
	}
	return costing(pids, do)
}

// costing does something n times, and returns the figures of that together with the CPU time in µs
// that each group of processes used for each.
func costing(pids map[string][]int, do func() (n int, found sample, err error)) (sample, error) {
	before, err := cpuTimes(pids)
	if err != nil {
		return nil, err
	}
	n, found, err := do()
	if err != nil {
		return nil, err
	}
	after, err := cpuTimes(pids)
	for name, used := range after {
		found[name] = perRequest(used-before[name], n)
	}
	return found, err
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
