package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/report"
)

//go:embed page.html
var pageText string

var pageTemplate = report.Parse(pageText)

// abouts are the kinds, in words for the page.
var abouts = map[kind]string{
	newOrder:   "sent to nginx",
	cardPay:    "asks the provider",
	walletPay:  "is taken from the customer's balance",
	pairOrder:  "sent to both replicas at the same moment",
	pairCard:   "the same with a card payment",
	pairWallet: "the same with a payment from the wallet",
	duplicate:  "the second of such a pair",
	replay:     "an answered request, sent again",
	mismatch:   "another request, sent with a used key",
}

// page is the report for people.
type page struct {
	report.Head
	Picture    template.URL // a PNG
	Answers    []line
	Kinds      []line
	Promises   []report.Promise
	Unread     string
	Violations []string
	More       int    // violations that are not shown
	Books      string // how much was compared
	Load       string
	Step       string // of the percentiles
	Command    string
	Machine    string
}

// line is a row of a table of percentiles.
type line struct {
	About, Colour string
	*row
}

// Digits are as many as a reader needs.
func (line) Digits(milliseconds float64) string { return digits(milliseconds) }

func digits(milliseconds float64) string {
	if milliseconds < 100 {
		return fmt.Sprintf("%.1f", milliseconds)
	}
	return fmt.Sprintf("%.0f", milliseconds)
}

// write makes the page, which has the picture in it.
func write(s summary, picture []byte, step time.Duration) ([]byte, error) {
	p := page{
		Head:     report.Head{Title: title(s), Verdict: verdict(s), Broken: !s.Passed, Tiles: tiles(s)},
		Picture:  template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)), //nolint:gosec // made here
		Promises: s.promises(), Unread: s.Unread, Books: compared(s), Load: load(s), Step: report.Short(step),
		Command: fmt.Sprintf("task test:stress:all RATE=%d DURATION=%s", s.Rate, s.Duration),
		Machine: fmt.Sprintf("%s, %s, %d cores", time.Now().Format(time.RFC1123), runtime.Version(), runtime.NumCPU()),
	}
	for n, r := range s.Classes {
		if r.Requests > 0 {
			p.Answers = append(p.Answers, line{classes[n].About, classes[n].Colour, r})
		}
	}
	for _, r := range s.Rows {
		if r.Requests > 0 {
			p.Kinds = append(p.Kinds, line{abouts[r.Kind], "", r})
		}
	}
	shown := s.Violations[:min(maxShown, len(s.Violations))]
	for _, f := range shown {
		p.Violations = append(p.Violations, f.String())
	}
	p.More = len(s.Violations) - len(shown)
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, p)
	return out.Bytes(), err
}

func title(s summary) string {
	return fmt.Sprintf("oncepay at %d requests a second for %s", s.Rate, s.Duration)
}

func verdict(s summary) string {
	if s.Passed {
		return "Passed: every key had one effect and one answer."
	}
	var why []string
	if s.Unread != "" {
		why = append(why, "nothing could be compared with what is stored")
	}
	if n := len(s.Violations); n > 0 {
		why = append(why, fmt.Sprintf("broken promises: %d", n))
	}
	if !s.Pace.Kept {
		why = append(why, "the rate was not kept, so these are the latencies of a lower one")
	}
	if len(why) == 0 {
		why = append(why, "not every request was sent")
	}
	return "Failed: " + strings.Join(why, "; ") + "."
}

func compared(s summary) string {
	text := fmt.Sprintf("Acknowledged: %d orders, %d card payments and %d payments from wallets.",
		s.Effects[placeOrder], s.Effects[payCard], s.Effects[payWallet])
	if e := s.Events; e != nil {
		text += fmt.Sprintf(" %d events were written, and %d of them are outstanding. Time from a change to the effect of its event: p50 %.1f ms, p99 %.1f ms, max %.1f ms.",
			e.Written, e.Outstanding, ms(e.Consumed.P50), ms(e.Consumed.P99), ms(e.Consumed.Max))
	}
	return text
}

func load(s summary) string {
	return fmt.Sprintf("%.1f requests a second were sent; 99%% of them at most %.1f ms late, the latest %.1f ms.", s.Pace.Achieved, s.Pace.P99, s.Pace.Max)
}

// tiles without a value are left out.
func tiles(s summary) []report.Tile {
	latency := func(n int, of func(*row) float64) string {
		if s.Classes[n].Requests == 0 {
			return ""
		}
		return digits(of(s.Classes[n])) + " ms"
	}
	p50, p99 := func(r *row) float64 { return r.P50 }, func(r *row) float64 { return r.P99 }
	effective, memory, replicas := "", "", []uint64{}
	if s.Events != nil && s.Events.Written > 0 {
		effective = digits(ms(s.Events.Consumed.P99)) + " ms"
	}
	for _, bytes := range s.Memory {
		replicas = append(replicas, bytes)
	}
	if len(replicas) > 0 {
		memory = fmt.Sprintf("%.0f MiB", float64(slices.Max(replicas))/(1<<20))
	}
	all := s.Rows[len(s.Rows)-1]
	return []report.Tile{
		{Value: strconv.Itoa(all.Requests), Label: "requests"},
		{Value: fmt.Sprintf("%.1f/s", s.Pace.Achieved), Label: fmt.Sprintf("of %d/s asked for", s.Rate)},
		{Value: latency(0, p50), Label: "first requests, p50"}, {Value: latency(0, p99), Label: "first requests, p99"},
		{Value: latency(1, p50), Label: "replays, p50"}, {Value: latency(1, p99), Label: "replays, p99"},
		{Value: effective, Label: "until an event has its effect, p99"}, {Value: memory, Label: "memory of a replica, at its peak"},
		{Value: strconv.Itoa(all.Unexpected), Label: "wrong answers"},
	}
}
