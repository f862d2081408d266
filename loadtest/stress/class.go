package main

import (
	"net/http"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/report"
)

// class is what an answer was. Each one is drawn apart: a replay is cheaper than what it repeats.
type class struct {
	Name   kind
	About  string
	Colour string // #rrggbb
}

var classes = []class{
	{"first requests", "201: the order or payment was made", "#33658a"},
	{"replays", "201: the kept answer of the first request", "#1a7f4b"},
	{"told to come again", "409: the same request was in progress at the other replica", "#b7791f"},
	{"refused", "422: the key belongs to another request", "#8a5a9e"},
	{"wrong", "none of these, or not the answer that was due", "#b3261e"},
}

// classOf is the place in classes.
func classOf(r *vegeta.Result, unexpected bool) int {
	switch {
	case unexpected:
		return 4
	case r.Code == http.StatusUnprocessableEntity:
		return 3
	case r.Code == http.StatusConflict:
		return 2
	case isReplay(r):
		return 1
	}
	return 0
}

// row counts the requests of one kind, or the answers of one class.
type row struct {
	Kind       kind    `json:"kind"`
	Requests   int     `json:"requests"`
	OK         int     `json:"ok"`
	Unexpected int     `json:"unexpected"`
	New        int     `json:"new"`      // 201, done now
	Replayed   int     `json:"replayed"` // 201, done before
	InProgress int     `json:"in_progress"`
	Refused    int     `json:"refused"` // 422
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`

	metrics vegeta.Metrics
}

func (r *row) add(result *vegeta.Result, class int) {
	r.metrics.Add(result)
	*[]*int{&r.New, &r.Replayed, &r.InProgress, &r.Refused, &r.Unexpected}[class]++
	r.Requests++
	r.OK = r.Requests - r.Unexpected
}

// close computes the latencies of all answers that were added.
func (r *row) close() {
	r.metrics.Close()
	l := r.metrics.Latencies
	r.P50, r.P95, r.P99, r.Max = ms(l.P50), ms(l.P95), ms(l.P99), ms(l.Max)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// series is one class over time.
type series struct {
	class
	number  int // its place in classes
	row     *row
	answers []spot
}

// spot is an answer, or a percentile of some: when the request was sent, and what the answer took.
type spot struct{ at, took time.Duration }

func (s *series) add(at time.Duration, result *vegeta.Result) {
	s.row.add(result, s.number)
	s.answers = append(s.answers, spot{at, result.Latency})
}

// percentile is a line with a spot in the middle of each step of time, in pieces: none crosses a
// time without answers.
func (s *series) percentile(step time.Duration, percent int) (pieces [][]spot) {
	steps := map[time.Duration][]time.Duration{}
	last := time.Duration(0)
	for _, a := range s.answers {
		steps[a.at/step] = append(steps[a.at/step], a.took)
		last = max(last, a.at/step)
	}
	broken := true
	for n := range last + 1 {
		took := steps[n]
		if len(took) == 0 {
			broken = true
			continue
		}
		if broken {
			pieces = append(pieces, nil)
			broken = false
		}
		slices.Sort(took)
		line := &pieces[len(pieces)-1]
		*line = append(*line, spot{n*step + step/2, report.Percentile(took, percent)})
	}
	return pieces
}
