package main

import (
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack"
)

// tiers are the servers whose CPU time is told apart, in the order of the tables.
var tiers = []string{"replicas", "PostgreSQL", "Redis", "nginx", "provider"}

// costing does something, and adds to its figures the CPU time in µs that each tier used for each
// request that was answered.
func (b *bench) costing(do func() (sample, error)) (sample, error) {
	pids := map[string][]int{}
	for i, services := range [][]string{stack.Replicas, {stack.Postgres}, {stack.Redis}, {stack.Nginx}, {stack.PSP}} {
		for _, service := range services {
			pids[tiers[i]] = append(pids[tiers[i]], b.stack.State.Service(service).Process.PID)
		}
	}
	return costing(pids, do)
}

// costing is the same for other groups of processes, by their names.
func costing(pids map[string][]int, do func() (sample, error)) (sample, error) {
	before, err := cpuTimes(pids)
	if err != nil {
		return nil, err
	}
	found, err := do()
	if err != nil {
		return nil, err
	}
	after, err := cpuTimes(pids)
	for name, used := range after {
		found[name] = float64((used - before[name]).Microseconds()) / max(found["answered"], 1)
	}
	return found, err
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
