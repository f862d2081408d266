package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

// Sizes in pixels.
const (
	narrowest, widest  = 1120.0, 16000.0
	perSecond          = 6.0 // unless that would be wider than the widest
	bucketWidth        = 3.0
	rateHeight         = 170.0
	latencyHeight      = 110.0
	gap                = 26.0
	laneHeight, barGap = 18.0, 3.0
	margin             = 72.0 // for the axes' labels
	axisHeight         = 18.0
	nextMark           = 90.0 // least distance of marks
)

var latencies = report.Log{From: time.Millisecond, To: 30 * time.Second}

// chart is the SVG: answers per second over latencies over the lanes of faults.
type chart struct {
	Width, Height, Margin   float64
	RateTop, RateBottom     float64
	LatencyTop, LatencyEnd  float64
	LanesTop, AxisY         float64
	Areas                   []area
	Latency50, Latency99    string // points of polylines
	Marks, Rates, Latencies []mark
	Lanes                   []lane
	Bars                    []bar
}

type area struct {
	Class, Points string
}

type mark struct {
	At    float64 // a coordinate
	Label string
}

type lane struct {
	Y    float64
	Name string
}

// bar is a fault: its hold, then the time until the service was back.
type bar struct {
	X, Y, Width, Tail, Height float64
	Fault
}

// bucket is what happened in a short time.
type bucket struct {
	count     [Unknown + 1]int
	latencies []time.Duration
}

func (b bucket) total() (n int) {
	for _, count := range b.count {
		n += count
	}
	return n
}

// scale turns time into pixels.
type scale struct {
	width, perSecond float64
	bucket           time.Duration
}

func newScale(length time.Duration) scale {
	s := scale{width: min(max(length.Seconds()*perSecond, narrowest), widest)}
	s.perSecond = s.width / max(1, length.Seconds())
	s.bucket = max(time.Second, time.Duration(bucketWidth/s.perSecond*float64(time.Second)).Round(time.Second))
	return s
}

func (s scale) x(at time.Duration) float64 { return margin + at.Seconds()*s.perSecond }

func newChart(p Page) chart {
	length := time.Second
	for _, a := range p.Attempts {
		length = max(length, a.At)
	}
	s := newScale(length)
	buckets := fill(p.Attempts, s.bucket)
	c := chart{Width: s.width + 2*margin, Margin: margin, RateTop: gap, RateBottom: gap + rateHeight}
	c.LatencyTop = c.RateBottom + gap
	c.LatencyEnd = c.LatencyTop + latencyHeight
	c.AxisY = c.LatencyEnd + axisHeight
	c.LanesTop = c.AxisY + gap/2
	c.drawRates(buckets, s)
	c.drawLatencies(buckets, s)
	c.drawFaults(p.Faults, s)
	c.drawMarks(length, s)
	c.Height = c.LanesTop + laneHeight*float64(len(c.Lanes)) + gap/2
	return c
}

func fill(attempts []Attempt, size time.Duration) []bucket {
	var buckets []bucket
	for _, a := range attempts {
		n := int(a.At / size)
		for len(buckets) <= n {
			buckets = append(buckets, bucket{})
		}
		buckets[n].count[a.Outcome]++
		buckets[n].latencies = append(buckets[n].latencies, a.Took)
	}
	return buckets
}

// drawRates stacks the outcomes.
func (c *chart) drawRates(buckets []bucket, s scale) {
	top := 1.0
	for _, b := range buckets {
		top = max(top, float64(b.total())/s.bucket.Seconds())
	}
	top = roundUp(top)
	floor := make([]float64, len(buckets))
	for outcome, class := range []string{"succeeded", "refused", "waiting", "unknown"} {
		var upper, lower []string
		for i, b := range buckets {
			x := s.x(time.Duration(i) * s.bucket)
			lower = append(lower, point(x, c.RateBottom-rateHeight*floor[i]/top))
			floor[i] += float64(b.count[outcome]) / s.bucket.Seconds()
			upper = append(upper, point(x, c.RateBottom-rateHeight*floor[i]/top))
		}
		slices.Reverse(lower)
		c.Areas = append(c.Areas, area{class, strings.Join(append(upper, lower...), " ")})
	}
	for _, part := range []float64{0, .5, 1} {
		c.Rates = append(c.Rates, mark{c.RateBottom - rateHeight*part, fmt.Sprintf("%.0f/s", top*part)})
	}
}

func (c *chart) drawLatencies(buckets []bucket, s scale) {
	y := func(d time.Duration) float64 { return c.LatencyEnd - latencyHeight*latencies.Part(d) }
	var middle, high []string
	for i, b := range buckets {
		if len(b.latencies) == 0 {
			continue
		}
		slices.Sort(b.latencies)
		x := s.x(time.Duration(i) * s.bucket)
		middle = append(middle, point(x, y(report.Percentile(b.latencies, 50))))
		high = append(high, point(x, y(report.Percentile(b.latencies, 99))))
	}
	c.Latency50, c.Latency99 = strings.Join(middle, " "), strings.Join(high, " ")
	for _, d := range latencies.Marks() {
		c.Latencies = append(c.Latencies, mark{y(d), report.Seconds(d)})
	}
}

// drawFaults draws one lane for each victim, in the order of appearance.
func (c *chart) drawFaults(faults []Fault, s scale) {
	rows := map[string]int{}
	for _, f := range faults {
		row, known := rows[f.Lane]
		if !known {
			row = len(rows)
			rows[f.Lane] = row
			c.Lanes = append(c.Lanes, lane{c.LanesTop + laneHeight*float64(row), f.Lane})
		}
		c.Bars = append(c.Bars, bar{X: s.x(f.From), Y: c.LanesTop + laneHeight*float64(row) + barGap, Height: laneHeight - 2*barGap,
			Width: max(2, (f.To-f.From).Seconds()*s.perSecond), Tail: max(0, f.Took().Seconds()*s.perSecond), Fault: f})
	}
}

// drawMarks labels the time at round distances.
func (c *chart) drawMarks(length time.Duration, s scale) {
	for _, at := range report.Marks(length, time.Duration(nextMark/s.perSecond*float64(time.Second))) {
		c.Marks = append(c.Marks, mark{s.x(at), report.Short(at)})
	}
}

// roundUp returns the next of 1, 2, 5, 10, 20, 50 …
func roundUp(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, digit := range []float64{1, 2, 5, 10} {
		if value <= digit*power {
			return digit * power
		}
	}
	return value
}

func point(x, y float64) string { return fmt.Sprintf("%.1f,%.1f", x, y) }
