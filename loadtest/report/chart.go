package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// Sizes of the drawing, in pixels: answers per second over latencies over the lanes of bars.
const (
	narrowest, widest      = 1120.0, 16000.0
	perSecond              = 6.0 // unless that would be wider than the widest
	bucketWidth            = 3.0
	margin                 = 72.0 // for the axes' labels
	rateTop, rateEnd       = 26.0, 196.0
	latencyTop, latencyEnd = 222.0, 332.0
	axisY, lanesTop        = 350.0, 363.0
	laneHeight, barGap     = 18.0, 3.0
	nextMark               = 90.0 // least distance of marks
)

var latencies = Log{From: 100 * time.Microsecond, To: 30 * time.Second}

// classes are the colours of attempts, from the bottom of the drawing to its top: told to come
// again is waiting, and no answer or a 5xx is unknown.
var classes = []string{"succeeded", "refused", "waiting", "unknown"}

// classOf tells outcomes apart.
var classOf = map[journal.Outcome]int{
	journal.Succeeded: 0, journal.LookedUp: 0, journal.Refused: 1, journal.Reused: 1, journal.Expired: 1,
	journal.InProgress: 2, journal.Rejected: 2, journal.TurnedAway: 2, journal.Unknown: 3,
}

// Chart is a drawing, as SVG, of what clients saw over time.
type Chart struct {
	Width, Margin, Top, AxisY      float64
	Areas, Lines                   []Shape
	Marks, Rates, Latencies, Lanes []Mark
	Bars                           []Bar

	perSecond float64 // pixels
}

// Shape is a polygon or a polyline, and its CSS class.
type Shape struct{ Class, Points string }

// Mark is a label at a coordinate.
type Mark struct {
	At    float64
	Label string
}

// Bar is something in a lane that lasted, and its consequences, which are drawn paler.
type Bar struct {
	X, Y, Width, Tail, Height float64
	Class, Title              string
}

// Lines are the attempts whose latencies are drawn together, by the CSS class of their lines.
type Lines map[string]func(journal.Attempt) bool

// NewChart draws attempts: the median and the 99th percentile of each of the lines.
func NewChart(attempts []journal.Attempt, lines Lines) *Chart {
	length := time.Second
	for _, a := range attempts {
		length = max(length, a.Return)
	}
	width := min(max(length.Seconds()*perSecond, narrowest), widest)
	c := &Chart{Width: width + 2*margin, Margin: margin, Top: rateTop, AxisY: axisY, perSecond: width / max(1, length.Seconds())}
	size := max(time.Second, c.duration(bucketWidth).Round(time.Second))
	buckets := make([][]journal.Attempt, length/size+1) // by when they were answered
	for _, a := range attempts {
		buckets[a.Return/size] = append(buckets[a.Return/size], a)
	}
	c.drawRates(buckets, size)
	for class, has := range lines {
		c.drawLatencies(class, has, buckets, size)
	}
	for _, d := range latencies.Marks() {
		c.Latencies = append(c.Latencies, Mark{latencyY(d), Seconds(d)})
	}
	for _, at := range Marks(length, c.duration(nextMark)) {
		c.Marks = append(c.Marks, Mark{c.x(at), Short(at)})
	}
	return c
}

// Height is that of the whole drawing.
func (c *Chart) Height() float64 { return lanesTop + laneHeight*float64(len(c.Lanes)) + 13 }

// AddBar draws a bar. Lanes are in the order of appearance.
func (c *Chart) AddBar(lane, title string, from, to, tail time.Duration) {
	row := slices.IndexFunc(c.Lanes, func(m Mark) bool { return m.Label == lane })
	if row < 0 {
		row = len(c.Lanes)
		c.Lanes = append(c.Lanes, Mark{lanesTop + laneHeight*float64(row), lane})
	}
	c.Bars = append(c.Bars, Bar{X: c.x(from), Y: c.Lanes[row].At + barGap, Height: laneHeight - 2*barGap, Class: strings.ToLower(lane), Title: title,
		Width: max(2, (to-from).Seconds()*c.perSecond), Tail: max(0, tail.Seconds()*c.perSecond)})
}

func (c *Chart) x(at time.Duration) float64 { return margin + at.Seconds()*c.perSecond }

func (c *Chart) duration(width float64) time.Duration {
	return time.Duration(width / c.perSecond * float64(time.Second))
}

// drawRates stacks the outcomes.
func (c *Chart) drawRates(buckets [][]journal.Attempt, size time.Duration) {
	top, rates := 1.0, make([][4]float64, len(buckets)) // by class, per second
	for n, attempts := range buckets {
		for _, a := range attempts {
			rates[n][classOf[a.Outcome()]] += 1 / size.Seconds()
		}
		top = max(top, float64(len(attempts))/size.Seconds())
	}
	top = roundUp(top)
	y := func(rate float64) float64 { return rateEnd - (rateEnd-rateTop)*rate/top }
	floor := make([]float64, len(buckets))
	for i, class := range classes {
		var upper, lower []string
		for n, rate := range rates {
			x := c.x(time.Duration(n) * size)
			lower = append(lower, point(x, y(floor[n])))
			floor[n] += rate[i]
			upper = append(upper, point(x, y(floor[n])))
		}
		slices.Reverse(lower)
		c.Areas = append(c.Areas, Shape{class, strings.Join(append(upper, lower...), " ")})
	}
	for _, rate := range []float64{0, top / 2, top} {
		c.Rates = append(c.Rates, Mark{y(rate), fmt.Sprintf("%.0f/s", rate)})
	}
}

func (c *Chart) drawLatencies(class string, has func(journal.Attempt) bool, buckets [][]journal.Attempt, size time.Duration) {
	p50, p99 := Shape{Class: class + " p50"}, Shape{Class: class + " p99"}
	for n, attempts := range buckets {
		var took []time.Duration
		for _, a := range attempts {
			if has(a) {
				took = append(took, a.Return-a.Invoke)
			}
		}
		if len(took) > 0 {
			slices.Sort(took)
			x := c.x(time.Duration(n) * size)
			p50.Points += point(x, latencyY(Percentile(took, 50))) + " "
			p99.Points += point(x, latencyY(Percentile(took, 99))) + " "
		}
	}
	c.Lines = append(c.Lines, p99, p50)
}

func latencyY(d time.Duration) float64 {
	return latencyEnd - (latencyEnd-latencyTop)*latencies.Part(d)
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
