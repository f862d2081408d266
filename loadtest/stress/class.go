package main

import (
	"net/http"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/audit"
	"github.com/oncepay/oncepay/loadtest/report"
)

// class is what an answer was. Each one is drawn apart: a replay is cheaper than what it repeats.
type class struct {
	Name  kind
	About string
	// Light and Dark are its colour on light and on dark paper, #rrggbb.
	Light, Dark string
}

var classes = []class{
	{"first requests", "201: the order or payment was made", "#33658a", "#74add6"},
	{"replays", "201: the kept answer of the first request", "#1a7f4b", "#5fc38e"},
	{"told to come again", "409: the same request was in progress at the other replica", "#b7791f", "#e0b04a"},
	{"refused", "422: the key belongs to another request", "#8a5a9e", "#c39ad6"},
	{"wrong", "none of these, or not the answer that was due", "#b3261e", "#ff8a80"},
}

// classOf is the place in classes.
func classOf(a audit.Answer, unexpected bool) int {
	switch {
	case unexpected:
		return 4
	case a.Status == http.StatusUnprocessableEntity:
		return 3
	case a.Status == http.StatusConflict:
		return 2
	case a.Replayed:
		return 1
	}
	return 0
}

// series is one class over time.
type series struct {
	class
	number  int // its place in classes
	row     *row
	answers []spot
}

// spot is an answer, or a percentile of some: when the request was sent, and what the answer took.
type spot struct{ at, took time.Duration }

func newSeries() (all []*series) {
	for n, c := range classes {
		all = append(all, &series{class: c, number: n, row: newRow(c.Name)})
	}
	return all
}

func (s *series) add(at time.Duration, result *vegeta.Result, a audit.Answer, unexpected bool) {
	s.row.add(result, a, unexpected)
	s.answers = append(s.answers, spot{at, result.Latency})
}

// percentiles has a line of spots for each percentage: one in the middle of each step of time.
func (s *series) percentiles(step time.Duration, percentages ...int) [][]spot {
	steps := map[time.Duration][]time.Duration{}
	for _, a := range s.answers {
		steps[a.at/step] = append(steps[a.at/step], a.took)
	}
	lines := make([][]spot, len(percentages))
	for n, took := range steps {
		slices.Sort(took)
		for i, percent := range percentages {
			lines[i] = append(lines[i], spot{n*step + step/2, report.Percentile(took, percent)})
		}
	}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b spot) int { return int(a.at - b.at) })
	}
	return lines
}
