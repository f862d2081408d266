package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

//go:embed page.html
var pageText string

var pageTemplate = report.Parse(pageText)

// page makes the report for people, which has the picture in it. The step is that of its lines.
func (o *outcome) page(picture []byte, step time.Duration) ([]byte, error) {
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, struct {
		report.Head
		*outcome
		Promises               []report.Promise
		Picture                template.URL
		Step, Command, Machine string
	}{
		report.Head{Title: o.title(), Verdict: o.verdict(), Broken: !o.Passed, Tiles: o.tiles()}, o, o.promises(),
		template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)), //nolint:gosec // made here
		report.Short(step), fmt.Sprintf("task test:stress:all RATE=%d DURATION=%s", o.Rate, o.Duration),
		fmt.Sprintf("%s, %s, %d cores", time.Now().Format(time.RFC1123), runtime.Version(), runtime.NumCPU()),
	})
	return out.Bytes(), err
}

// tiles without a value are left out.
func (o *outcome) tiles() []report.Tile {
	unless := func(unmeasured bool, value string) string {
		if unmeasured {
			return ""
		}
		return value
	}
	latency := func(class *row, of float64) string { return unless(class.Requests == 0, digits(of)+" ms") }
	events := o.Events
	if events == nil {
		events = &published{}
	}
	memory := slices.Max(append(slices.Collect(maps.Values(o.Memory)), 0))
	firsts, replays := o.Classes[0], o.Classes[1]
	return []report.Tile{
		{Value: strconv.Itoa(o.all().Requests), Label: "requests"},
		{Value: fmt.Sprintf("%.1f/s", o.Pace.Achieved), Label: fmt.Sprintf("of %d/s asked for", o.Rate)},
		{Value: latency(firsts, firsts.P50), Label: "first requests, p50"}, {Value: latency(firsts, firsts.P99), Label: "first requests, p99"},
		{Value: latency(replays, replays.P50), Label: "replays, p50"}, {Value: latency(replays, replays.P99), Label: "replays, p99"},
		{Value: unless(events.Written == 0, digits(report.Milliseconds(events.Consumed.P99))+" ms"), Label: "until an event has its effect, p99"},
		{Value: unless(memory == 0, fmt.Sprintf("%.0f MiB", mebibytes(memory))), Label: "memory of a replica, at its peak"},
		{Value: strconv.Itoa(o.all().Unexpected), Label: "wrong answers"},
	}
}
