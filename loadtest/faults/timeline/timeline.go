// Package timeline draws a campaign as one self-contained HTML page: throughput and latency over
// time with the fault runs, the promises, and the slowest recoveries.
package timeline

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

// Page is what is shown.
type Page struct {
	report.Head
	Command    string // repeats the run
	Versions   string
	Attempts   []Attempt
	Faults     []Fault
	Promises   []report.Promise
	Kinds      []Kind
	Evidence   string   // of violations: what was seen
	NotCovered []string // by any run
}

// Attempt is a point of the curves.
type Attempt struct {
	At, Took time.Duration
	Outcome  Outcome
}

// Outcome colours an attempt.
type Outcome int

// The outcomes, from the bottom of the drawing to its top.
const (
	Succeeded Outcome = iota
	Refused           // a final answer that is no success
	Waiting           // to be retried: another attempt runs, or the answer decides nothing
	Unknown           // no answer, or a 5xx
)

// Fault is a bar in the lane of its victim.
type Fault struct {
	Name, Lane     string
	From, To, Back time.Duration // Back: when every endpoint answered again
	InFlight       int
}

// Kind is what a kind of fault amounted to.
type Kind struct {
	Name                   string
	Faults, InFlight, Hits int
	Slowest                time.Duration
}

//go:embed page.html
var text string

var page = report.Parse(text)

// Write draws the page.
func Write(out io.Writer, p Page) error {
	if err := page.Execute(out, draw(p)); err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return nil
}

const maxSlowest = 8

// drawing is the page with its geometry.
type drawing struct {
	Page
	Chart   chart
	Slowest []Fault
}

func draw(p Page) drawing {
	slowest := slices.SortedFunc(slices.Values(p.Faults), func(a, b Fault) int { return int(b.Took() - a.Took()) })
	return drawing{Page: p, Chart: newChart(p), Slowest: slowest[:min(maxSlowest, len(slowest))]}
}

// Took is the time from healing to recovery.
func (f Fault) Took() time.Duration { return f.Back - f.To }

// Class is the lane's name as a CSS class.
func (f Fault) Class() string { return strings.ToLower(strings.Fields(f.Lane + " none")[0]) }
