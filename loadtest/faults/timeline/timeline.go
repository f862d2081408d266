// Package timeline draws a campaign as one self-contained HTML page: throughput and latency over time with the faults drawn in, the
// verdicts, and the slowest recoveries.
package timeline

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

// The drawing's size in pixels. Faults get lanes below the curves.
const (
	width, height = 1200.0, 220.0
	laneHeight    = 16.0
	lanes         = 3
	maxSlowest    = 10
)

// Page is what is shown.
type Page struct {
	Title, Command string
	Facts          []string
	Attempts       []Attempt
	Faults         []Fault
	Verdicts       []Verdict
}

// Attempt is a point of the curves.
type Attempt struct {
	At, Took time.Duration
	OK       bool // there was an answer
}

// Fault is a bar.
type Fault struct {
	Name           string
	From, To, Back time.Duration
	InFlight       int
}

// Verdict is a line of the table.
type Verdict struct {
	Promise, Verdict string
	Broken           bool
}

// second is what happened in one second.
type second struct {
	answered, unknown int
	latencies         []time.Duration
}

type bar struct {
	X, Y, Width float64
	Fault
}

type drawing struct {
	Page
	Width, Height, Total       float64
	Answered, Unknown, Latency string // points of polylines
	MaxRate                    int
	MaxLatency                 time.Duration
	Bars                       []bar
	Slowest                    []Fault
	Marks                      []mark
}

type mark struct {
	X     float64
	Label string
}

// Write draws the page.
func Write(out io.Writer, p Page) error {
	if err := page.Execute(out, draw(p)); err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return nil
}

func draw(p Page) drawing {
	d := drawing{Page: p, Width: width, Height: height, Total: height + 20 + lanes*laneHeight}
	seconds := bySecond(p.Attempts)
	scale := width / float64(max(1, len(seconds)))
	p99 := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		d.MaxRate = max(d.MaxRate, s.answered, s.unknown)
		if slices.Sort(s.latencies); len(s.latencies) > 0 {
			p99[i] = s.latencies[len(s.latencies)*99/100]
		}
		d.MaxLatency = max(d.MaxLatency, p99[i])
	}
	curve := func(value func(i int) float64) string {
		var points strings.Builder
		for i := range seconds {
			fmt.Fprintf(&points, "%.1f,%.1f ", float64(i)*scale, height-height*value(i))
		}
		return points.String()
	}
	rate := float64(max(1, d.MaxRate))
	d.Answered = curve(func(i int) float64 { return float64(seconds[i].answered) / rate })
	d.Unknown = curve(func(i int) float64 { return float64(seconds[i].unknown) / rate })
	d.Latency = curve(func(i int) float64 { return float64(p99[i]) / float64(max(1, d.MaxLatency)) })
	for i, f := range p.Faults {
		d.Bars = append(d.Bars, bar{X: f.From.Seconds() * scale, Width: max(2, (f.To-f.From).Seconds()*scale), Y: height + 20 + float64(i%lanes)*laneHeight, Fault: f})
	}
	for s := 0; s < len(seconds); s += max(10, len(seconds)/12) {
		d.Marks = append(d.Marks, mark{float64(s) * scale, (time.Duration(s) * time.Second).String()})
	}
	d.Slowest = slices.SortedFunc(slices.Values(p.Faults), func(a, b Fault) int { return int((b.Back - b.To) - (a.Back - a.To)) })
	d.Slowest = d.Slowest[:min(maxSlowest, len(d.Slowest))]
	return d
}

func bySecond(attempts []Attempt) []second {
	var seconds []second
	for _, a := range attempts {
		n := int(a.At / time.Second)
		for len(seconds) <= n {
			seconds = append(seconds, second{})
		}
		if a.OK {
			seconds[n].answered++
		} else {
			seconds[n].unknown++
		}
		seconds[n].latencies = append(seconds[n].latencies, a.Took)
	}
	return seconds
}

// Took is the time to recovery.
func (f Fault) Took() string { return fmt.Sprintf("%.2f s", (f.Back - f.To).Seconds()) }

// At is when the fault began.
func (f Fault) At() string { return fmt.Sprintf("%.1f s", f.From.Seconds()) }

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body{font:14px/1.5 system-ui,sans-serif;max-width:1240px;margin:2rem auto;padding:0 1rem;color:#1c2733}
svg{width:100%;background:#f7f9fb;border-radius:6px} polyline{fill:none;stroke-width:1.5}
.facts span{display:inline-block;background:#eef2f6;border-radius:4px;padding:.2rem .6rem;margin:.2rem .3rem .2rem 0}
table{border-collapse:collapse;margin:1rem 0} td,th{text-align:left;padding:.2rem 1.2rem .2rem 0;border-bottom:1px solid #e4e9ee}
.broken{color:#b3261e;font-weight:600} .answered{stroke:#1769aa;color:#1769aa} .unknown{stroke:#b3261e;color:#b3261e} .latency{stroke:#b58900;color:#b58900}
code{background:#eef2f6;padding:.1rem .3rem} rect{fill:#7a5195;opacity:.75} rect:hover{opacity:1} text{font-size:10px;fill:#5b6b7a}
</style>
<h1>{{.Title}}</h1><p class="facts">{{range .Facts}}<span>{{.}}</span>{{end}}</p>
<p>Again: <code>{{.Command}}</code></p>
<p><b class="answered">answered per second</b> (up to {{.MaxRate}}), <b class="unknown">without an answer or 5xx</b>,
<b class="latency">p99 latency</b> (up to {{.MaxLatency}}); the bars are faults, their names show under the pointer.</p>
<svg viewBox="0 0 {{.Width}} {{.Total}}">
{{range .Marks}}<line x1="{{.X}}" x2="{{.X}}" y1="0" y2="{{$.Height}}" stroke="#e4e9ee"/><text x="{{.X}}" y="{{$.Height}}" dy="13">{{.Label}}</text>{{end}}
<polyline class="answered" points="{{.Answered}}"/><polyline class="unknown" points="{{.Unknown}}"/><polyline class="latency" points="{{.Latency}}"/>
{{range .Bars}}<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="12"><title>{{.Name}} at {{.At}}, {{.InFlight}} requests in flight, back after {{.Took}}</title></rect>{{end}}
</svg>
<table><tr><th>Promise</th><th>Verdict</th></tr>{{range .Verdicts}}<tr{{if .Broken}} class="broken"{{end}}><td>{{.Promise}}</td><td>{{.Verdict}}</td></tr>{{end}}</table>
<h2>Slowest recoveries</h2>
<table><tr><th>Fault</th><th>At</th><th>In flight</th><th>Back after</th></tr>{{range .Slowest}}<tr><td>{{.Name}}</td><td>{{.At}}</td><td>{{.InFlight}}</td><td>{{.Took}}</td></tr>{{end}}</table>
</html>
`))
