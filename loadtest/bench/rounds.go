package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// sample is what one measurement found, by the names of its figures.
type sample map[string]float64

// grown is by how much figures have grown while something was done.
func grown(read func() (sample, error), do func() error) (sample, error) {
	before, err := read()
	if err == nil {
		err = do()
	}
	if err != nil {
		return nil, err
	}
	after, err := read()
	for name := range after {
		after[name] -= before[name]
	}
	return after, err
}

// trial is what is measured once a round.
type trial struct {
	name    string
	measure func(context.Context) (sample, error)
}

// results are the samples of each trial, one for each round.
type results map[string][]sample

// interleave measures all trials in turn, round by round: what happens to the machine meanwhile
// happens to all of them.
func (b *bench) interleave(ctx context.Context, rounds int, trials []trial) (results, error) {
	found := results{}
	for round := range rounds {
		for _, t := range trials {
			s, err := t.measure(ctx)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			found[t.name] = append(found[t.name], s)
			fmt.Fprintf(b.out, "  round %d of %d: %s\n", round+1, rounds, t.name)
		}
	}
	return found, nil
}

// spread is the median of a figure, and its extremes.
type spread struct{ median, least, most float64 }

// Of returns the spread of a figure of a trial over the rounds, and zeros if there is none.
func (r results) Of(trial, figure string) spread {
	var values []float64
	for _, s := range r[trial] {
		values = append(values, s[figure])
	}
	return spreadOf(values)
}

// Ratio compares a figure of a trial with that of another one, round by round.
func (r results) Ratio(trial, to, figure string) spread {
	var values []float64
	for i, s := range r[trial] {
		if base := r[to][i][figure]; base > 0 {
			values = append(values, s[figure]/base)
		}
	}
	return spreadOf(values)
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	slices.Sort(values)
	last := len(values) - 1
	return spread{(values[last/2] + values[len(values)/2]) / 2, values[0], values[last]}
}
