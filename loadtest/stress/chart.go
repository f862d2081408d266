package main

import (
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

// chart has one panel for each class that had answers. All panels have the same axes, so that they
// can be compared. The page and the picture draw it.
type chart struct {
	length  time.Duration
	step    time.Duration // of the percentiles
	latency report.Log
	panels  []panel
}

// panel is a class: every answer as a dot, and percentiles as lines.
type panel struct {
	*series
	dots          []spot
	p50, p95, p99 []spot
}

const (
	// steps are how many percentiles a line has, at most: a step needs some answers.
	steps = 30
	// marksOfTime are as many as have room on a narrow screen.
	marksOfTime = 7
	// columns and rows of a panel have at most one dot in each place, as a load of minutes has more
	// answers than a screen has room for.
	columns, rows = 1000, 150
)

// newChart is of a load of that length.
func newChart(all []*series, length time.Duration) chart {
	c := chart{length: length}
	fastest, slowest := time.Hour, time.Duration(0)
	for _, s := range all {
		for _, a := range s.answers {
			c.length = max(c.length, a.at)
			fastest, slowest = min(fastest, a.took), max(slowest, a.took)
		}
	}
	c.step = max(time.Second, (c.length / steps).Round(time.Second))
	c.latency = report.Around(fastest, slowest)
	for _, s := range all {
		if len(s.answers) > 0 {
			lines := s.percentiles(c.step, 50, 95, 99)
			c.panels = append(c.panels, panel{s, c.thin(s.answers), lines[0], lines[1], lines[2]})
		}
	}
	return c
}

// thin leaves out what would be drawn on top of another dot.
func (c chart) thin(answers []spot) (dots []spot) {
	type place struct{ column, row int }
	taken := map[place]bool{}
	for _, a := range answers {
		at := place{int(c.x(a) * columns), int(c.latency.Part(a.took) * rows)}
		if !taken[at] {
			taken[at] = true
			dots = append(dots, a)
		}
	}
	return dots
}

// pieces are a line without what would cross a time without answers.
func (c chart) pieces(line []spot) (pieces [][]spot) {
	var before time.Duration
	for _, s := range line {
		if len(pieces) == 0 || s.at-before > c.step {
			pieces = append(pieces, nil)
		}
		last := len(pieces) - 1
		pieces[last] = append(pieces[last], s)
		before = s.at
	}
	return pieces
}

// x is the place on the axis of time, from 0 to 1.
func (c chart) x(s spot) float64 { return min(1, float64(s.at)/float64(c.length)) }

func (c chart) times() []time.Duration { return report.Marks(c.length, c.length/marksOfTime) }
