package main

import (
	"image/color"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/report"
)

// row counts the requests of one kind, or the answers of one class.
type row struct {
	Kind       kind        `json:"kind"`
	About      string      `json:"-"`
	Colour     color.NRGBA `json:"-"` // of a class
	Requests   int         `json:"requests"`
	OK         int         `json:"ok"`
	Unexpected int         `json:"unexpected"`
	New        int         `json:"new"`      // 201, done now
	Replayed   int         `json:"replayed"` // 201, done before
	InProgress int         `json:"in_progress"`
	Refused    int         `json:"refused"` // 422
	P50        float64     `json:"p50_ms"`
	P95        float64     `json:"p95_ms"`
	P99        float64     `json:"p99_ms"`
	Max        float64     `json:"max_ms"`

	answers []spot
}

// classes are what an answer was. Each one is drawn apart: a replay is cheaper than what it
// repeats.
var classes = []row{
	{Kind: "first requests", About: "201: the order or payment was made", Colour: color.NRGBA{0x33, 0x65, 0x8a, 0xff}},
	{Kind: "replays", About: "201: the kept answer of the first request", Colour: color.NRGBA{0x1a, 0x7f, 0x4b, 0xff}},
	{Kind: "told to come again", About: "409: the same request was in progress at the other replica", Colour: color.NRGBA{0xb7, 0x79, 0x1f, 0xff}},
	{Kind: "refused", About: "422: the key belongs to another request", Colour: color.NRGBA{0x8a, 0x5a, 0x9e, 0xff}},
	{Kind: "wrong", About: "none of these, or not the answer that was due", Colour: color.NRGBA{0xb3, 0x26, 0x1e, 0xff}},
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

// spot is an answer, or a percentile of some: when the request was sent, and what the answer took.
type spot struct{ at, took time.Duration }

func (r *row) add(answer spot, class int) {
	r.answers = append(r.answers, answer)
	*[]*int{&r.New, &r.Replayed, &r.InProgress, &r.Refused, &r.Unexpected}[class]++
	r.Requests++
	r.OK = r.Requests - r.Unexpected
}

// close computes the latencies of all answers that were added.
func (r *row) close() {
	for percent, to := range map[int]*float64{50: &r.P50, 95: &r.P95, 99: &r.P99, 100: &r.Max} {
		*to = report.Milliseconds(percentile(r.answers, percent))
	}
}

// percentile is that of the latencies; 0 if there are none.
func percentile(answers []spot, percent int) time.Duration {
	if len(answers) == 0 {
		return 0
	}
	took := make([]time.Duration, len(answers))
	for i, a := range answers {
		took[i] = a.took
	}
	slices.Sort(took)
	return report.Percentile(took, percent)
}

// percentiles are a line with a spot in the middle of each step of time, in pieces: none crosses a
// time without answers.
func (r *row) percentiles(step time.Duration, percent int) (pieces [][]spot) {
	steps := map[time.Duration][]spot{}
	for _, a := range r.answers {
		steps[a.at/step] = append(steps[a.at/step], a)
	}
	for _, n := range slices.Sorted(maps.Keys(steps)) {
		if n == 0 || len(steps[n-1]) == 0 {
			pieces = append(pieces, nil)
		}
		piece := &pieces[len(pieces)-1]
		*piece = append(*piece, spot{n*step + step/2, percentile(steps[n], percent)})
	}
	return pieces
}

// Digits are as many as a reader needs.
func (r *row) Digits(milliseconds float64) string { return digits(milliseconds) }

func digits(milliseconds float64) string {
	if milliseconds < 100 {
		return strconv.FormatFloat(milliseconds, 'f', 1, 64)
	}
	return strconv.FormatFloat(milliseconds, 'f', 0, 64)
}
