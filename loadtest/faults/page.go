package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

// notCovered is what no campaign shows.
var notCovered = []string{
	"Power cuts, lost fsyncs and disks that lie: PostgreSQL is crashed and paused, its disk is not.",
	"PostgreSQL failing over to an asynchronous standby, or restored from a backup under load: both lose commits, and promises with them. " +
		"(Tests of the service show that the loss is noticed and named.)",
	"Clocks that jump: the replicas' clocks are the machine's. (Clients time requests as a proxy does whose clock is two seconds ahead; tests of the service have PostgreSQL's clock jump by hours, and a replica's an hour off.)",
	"A provider that breaks its own idempotency: it may be slow, silent, failing and senseless, but charges once per key. " +
		"(Tests of the service have one that forgets a key after an hour, and one that charges an hour after it was asked. " +
		"If it forgets a key within the hour, or charges later, money moves without a payment: its event then raises ProviderContradictsItself.)",
	"More than two replicas, more than one machine, and networks that reorder or corrupt what they deliver.",
}

//go:embed page.html
var pageText string

var pageTemplate = report.Parse(pageText)

// maxSlowest is how many recoveries the page lists.
const maxSlowest = 8

// drawPage draws a campaign as one self-contained HTML page: throughput and latency over time with
// the fault runs, the promises, and the slowest recoveries.
func drawPage(out io.Writer, s summary, attempts []journal.Attempt, evidence string) error {
	s.Runs = slices.DeleteFunc(slices.Clone(s.Runs), func(r faultRun) bool { return r.NotFired })
	slowest := slices.SortedFunc(slices.Values(s.Runs), func(a, b faultRun) int { return int(b.Took() - a.Took()) })
	page := struct {
		report.Head
		summary

		Chart      chart
		Recoveries []faultRun
		Evidence   string // of violations: what was seen
		NotCovered []string
	}{report.Head{Title: fmt.Sprintf("oncepay under %d faults", s.Faults), Verdict: fmt.Sprintf("All %d promises were kept.", len(s.Promises)),
		Broken: len(s.Violations) > 0, Tiles: tiles(s)}, s, newChart(attempts, s.Runs), slowest[:min(maxSlowest, len(slowest))], evidence, notCovered}
	if page.Broken {
		page.Verdict = fmt.Sprintf("Promises were broken: %d violations.", len(s.Violations))
	}
	if err := pageTemplate.Execute(out, page); err != nil {
		return fmt.Errorf("draw the page: %w", err)
	}
	return nil
}

// tiles without a value are left out.
func tiles(s summary) []report.Tile {
	seconds := func(d time.Duration, measured int) string {
		if measured == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return []report.Tile{
		{Value: report.Short(s.Duration.Round(time.Second)), Label: "of load"}, {Value: strconv.Itoa(s.Faults), Label: "faults"},
		{Value: strconv.Itoa(s.Attempts), Label: "attempts"}, {Value: strconv.Itoa(s.Keys), Label: "keys"},
		{Value: strconv.Itoa(s.Effects["charges"]), Label: "charges"}, {Value: strconv.Itoa(s.PassedOn), Label: "POSTs passed on by nginx"},
		{Value: seconds(s.Death.Nginx, s.Deaths), Label: "nginx without an answer after a death"},
		{Value: seconds(s.Death.Decided, s.Death.Keys), Label: "until a dead replica's key was decided"}, {Value: strconv.Itoa(len(s.Violations)), Label: "violations"},
	}
}

// Sizes of the drawing, in pixels: answers per second over latencies over the lanes of faults.
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

var latencies = report.Log{From: time.Millisecond, To: 30 * time.Second}

// classes are the colours of attempts, from the bottom of the drawing to its top: told to come
// again is waiting, and no answer or a 5xx is unknown.
var classes = []string{"succeeded", "refused", "waiting", "unknown"}

// classOf tells outcomes apart.
var classOf = map[journal.Outcome]int{
	journal.Succeeded: 0, journal.LookedUp: 0, journal.Refused: 1, journal.Reused: 1, journal.Expired: 1,
	journal.InProgress: 2, journal.Rejected: 2, journal.TurnedAway: 2, journal.Unknown: 3,
}

// chart is the SVG.
type chart struct {
	Width, Height, Margin, Top, AxisY float64
	Areas                             []area
	Latency50, Latency99              string // points of polylines
	Marks, Rates, Latencies, Lanes    []mark
	Bars                              []bar

	perSecond float64 // pixels
}

type area struct{ Class, Points string }

// mark is a label at a coordinate.
type mark struct {
	At    float64
	Label string
}

// bar is a fault: its hold, then the time until the service was back.
type bar struct {
	X, Y, Width, Tail, Height float64
	faultRun
}

// bucket is what happened in a short time.
type bucket struct {
	count     [4]float64 // by class, per second
	latencies []time.Duration
}

func newChart(attempts []journal.Attempt, runs []faultRun) chart {
	length := time.Second
	for _, a := range attempts {
		length = max(length, a.Return)
	}
	width := min(max(length.Seconds()*perSecond, narrowest), widest)
	c := chart{Width: width + 2*margin, Margin: margin, Top: rateTop, AxisY: axisY, perSecond: width / max(1, length.Seconds())}
	size := max(time.Second, c.duration(bucketWidth).Round(time.Second))
	buckets := make([]bucket, length/size+1)
	for _, a := range attempts {
		b := &buckets[a.Return/size]
		b.count[classOf[a.Outcome()]] += 1 / size.Seconds()
		b.latencies = append(b.latencies, a.Return-a.Invoke)
	}
	c.drawRates(buckets, size)
	c.drawLatencies(buckets, size)
	c.drawFaults(runs)
	for _, at := range report.Marks(length, c.duration(nextMark)) {
		c.Marks = append(c.Marks, mark{c.x(at), report.Short(at)})
	}
	c.Height = lanesTop + laneHeight*float64(len(c.Lanes)) + 13
	return c
}

func (c *chart) x(at time.Duration) float64 { return margin + at.Seconds()*c.perSecond }

func (c *chart) duration(width float64) time.Duration {
	return time.Duration(width / c.perSecond * float64(time.Second))
}

// drawRates stacks the outcomes.
func (c *chart) drawRates(buckets []bucket, size time.Duration) {
	top := 1.0
	for _, b := range buckets {
		top = max(top, b.count[0]+b.count[1]+b.count[2]+b.count[3])
	}
	top = roundUp(top)
	y := func(rate float64) float64 { return rateEnd - (rateEnd-rateTop)*rate/top }
	floor := make([]float64, len(buckets))
	for i, class := range classes {
		var upper, lower []string
		for n, b := range buckets {
			x := c.x(time.Duration(n) * size)
			lower = append(lower, point(x, y(floor[n])))
			floor[n] += b.count[i]
			upper = append(upper, point(x, y(floor[n])))
		}
		slices.Reverse(lower)
		c.Areas = append(c.Areas, area{class, strings.Join(append(upper, lower...), " ")})
	}
	for _, rate := range []float64{0, top / 2, top} {
		c.Rates = append(c.Rates, mark{y(rate), fmt.Sprintf("%.0f/s", rate)})
	}
}

func (c *chart) drawLatencies(buckets []bucket, size time.Duration) {
	y := func(d time.Duration) float64 { return latencyEnd - (latencyEnd-latencyTop)*latencies.Part(d) }
	for i, b := range buckets {
		if len(b.latencies) == 0 {
			continue
		}
		slices.Sort(b.latencies)
		x := c.x(time.Duration(i) * size)
		c.Latency50 += point(x, y(report.Percentile(b.latencies, 50))) + " "
		c.Latency99 += point(x, y(report.Percentile(b.latencies, 99))) + " "
	}
	for _, d := range latencies.Marks() {
		c.Latencies = append(c.Latencies, mark{y(d), report.Seconds(d)})
	}
}

// drawFaults draws one lane for each victim, in the order of appearance.
func (c *chart) drawFaults(runs []faultRun) {
	for _, r := range runs {
		row := slices.IndexFunc(c.Lanes, func(lane mark) bool { return lane.Label == string(r.Victim) })
		if row < 0 {
			row = len(c.Lanes)
			c.Lanes = append(c.Lanes, mark{lanesTop + laneHeight*float64(row), string(r.Victim)})
		}
		c.Bars = append(c.Bars, bar{X: c.x(r.Injected), Y: c.Lanes[row].At + barGap, Height: laneHeight - 2*barGap,
			Width: max(2, (r.Healed-r.Injected).Seconds()*c.perSecond), Tail: max(0, r.Took().Seconds()*c.perSecond), faultRun: r})
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
