package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/report"
)

const (
	// maxShown violations are printed; the JSON has all.
	maxShown = 20
	// keptShare of the asked rate must have been driven; below it, the latencies
	// are those of another, gentler test.
	keptShare = 0.95
)

// errOff says that the run is over and something is wrong.
var errOff = errors.New("not everything is as it must be")

// outcome is everything that one run found out, and the JSON report.
type outcome struct {
	Run        string            `json:"run"`
	Rate       int               `json:"rate_per_second"`
	Duration   string            `json:"duration"`
	Rows       []row             `json:"kinds"`   // as kinds, and then that of all requests
	Effects    map[string]int    `json:"effects"` // distinct keys that were acknowledged, orders and payments by their method
	Pace       punctual          `json:"pace"`
	Memory     map[string]uint64 `json:"peak_resident_bytes"` // by replica
	Events     *published        `json:"events,omitempty"`    // nil: they were not measured
	Violations []books.Violation `json:"findings"`
	Unread     string            `json:"unread,omitempty"` // why nothing was compared
	Passed     bool              `json:"passed"`

	out     string // folder of the files
	answers []answer
}

// conclude computes what follows from all that was found. Unread is why there was no audit, if so.
func (l *load) conclude(kept map[string]answer, found []books.Violation, events *published, unread error) *outcome {
	o := &outcome{Run: l.shop.Run, Rate: l.cfg.Rate, Duration: l.cfg.Duration.String(), Effects: map[string]int{}, Pace: l.cfg.punctuality(l.answers),
		Memory: l.memory, Events: events, Violations: found, out: l.cfg.Out, answers: l.answers}
	for _, k := range kinds {
		o.Rows = append(o.Rows, tally(string(k), slices.DeleteFunc(slices.Clone(l.answers), func(a answer) bool { return a.kind != k })))
	}
	o.Rows = append(o.Rows, tally("all", l.answers))
	for _, a := range kept {
		o.Effects[cmp.Or(a.method, "order")]++
	}
	if unread != nil {
		o.Unread = unread.Error()
	}
	o.Passed = unread == nil && len(found) == 0 && o.Pace.Kept && len(l.answers) == l.cfg.requests()
	return o
}

// latency has percentiles in milliseconds.
type latency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func latencyOf(all []time.Duration) (l latency) {
	slices.Sort(all)
	for percent, to := range map[int]*float64{50: &l.P50, 95: &l.P95, 99: &l.P99, 100: &l.Max} {
		if len(all) > 0 {
			*to = report.Milliseconds(report.Percentile(all, percent))
		}
	}
	return l
}

// row counts the requests of one kind.
type row struct {
	Kind       string `json:"kind"`
	Requests   int    `json:"requests"`
	OK         int    `json:"ok"`
	Unexpected int    `json:"unexpected"`
	New        int    `json:"new"`      // 201, done now
	Replayed   int    `json:"replayed"` // 201, done before
	InProgress int    `json:"in_progress"`
	Refused    int    `json:"refused"` // 422
	latency
}

func tally(kind string, answers []answer) row {
	r := row{Kind: kind, Requests: len(answers)}
	var took []time.Duration
	for _, a := range answers {
		took = append(took, a.Return-a.Invoke)
		switch {
		case a.wrong != "":
			r.Unexpected++
		case a.Status == http.StatusUnprocessableEntity:
			r.Refused++
		case a.Status == http.StatusConflict:
			r.InProgress++
		case a.Replayed:
			r.Replayed++
		default:
			r.New++
		}
	}
	r.OK, r.latency = r.Requests-r.Unexpected, latencyOf(took)
	return r
}

// punctual says whether the load was what was asked for. A client that is
// late measures the system at a lower rate, which flatters it.
type punctual struct {
	Achieved float64 `json:"achieved_per_second"`
	Late     latency `json:"late"` // how late requests were sent
	Kept     bool    `json:"kept"`
}

// punctuality judges when the requests were sent.
func (c config) punctuality(answers []answer) punctual {
	p, end, late := punctual{}, time.Duration(0), []time.Duration(nil)
	for _, a := range answers {
		late = append(late, a.Invoke-c.due(a.Number))
		end = max(end, a.Invoke)
	}
	if len(answers) == 0 {
		return p
	}
	p.Late, p.Achieved = latencyOf(late), float64(c.Rate)
	// The plan's own span, and what it took: a short run that ends with a
	// pair must not seem faster than it was.
	if span := c.due(len(answers) - 1); end > span && span > 0 {
		p.Achieved *= float64(span) / float64(end)
	}
	p.Kept = p.Achieved >= keptShare*float64(c.Rate)
	return p
}

// promises are those that were checked, and every rule that is broken.
func (o *outcome) promises() []report.Promise {
	checked := slices.Clone(ofAnswers)
	if o.Unread == "" {
		checked = append(checked, ofBooks...)
	}
	if o.Events != nil {
		checked = append(checked, inTime)
	}
	return report.Promises(checked, o.Violations)
}

func (o *outcome) print(out io.Writer) {
	o.table().Print(out)
	fmt.Fprintf(out, "\n%s\n%s\n", o.compared(), o.load())
	for _, name := range slices.Sorted(maps.Keys(o.Memory)) {
		fmt.Fprintf(out, "Memory of %s at its peak: %.1f MiB resident.\n", name, mebibytes(o.Memory[name]))
	}
	fmt.Fprintln(out, o.verdict())
	for _, p := range o.promises() {
		if p.Broken > 0 {
			fmt.Fprintf(out, "  %6d  %s\n", p.Broken, p.Rule)
		}
	}
	fmt.Fprint(out, o.evidence())
}

// evidence is why nothing was compared, and the first violations.
func (o *outcome) evidence() (text string) {
	if o.Unread != "" {
		text = "  " + o.Unread + "\n"
	}
	for _, v := range o.Violations[:min(maxShown, len(o.Violations))] {
		text += fmt.Sprintf("  - %s\n", v)
	}
	return text
}

func (o *outcome) verdict() string {
	if o.Passed {
		return "Passed: every key had one effect and one answer."
	}
	var why []string
	if o.Unread != "" {
		why = append(why, "nothing could be compared with what is stored")
	}
	if n := len(o.Violations); n > 0 {
		why = append(why, fmt.Sprintf("broken promises: %d", n))
	}
	if !o.Pace.Kept {
		why = append(why, "the rate was not kept, so these are the latencies of a lower one")
	}
	if len(why) == 0 {
		why = append(why, "not every request was sent")
	}
	return "Failed: " + strings.Join(why, "; ") + "."
}

// compared says how much was, and how late events were.
func (o *outcome) compared() string {
	text := fmt.Sprintf("Acknowledged: %d orders, %d card payments and %d payments from wallets.",
		o.Effects["order"], o.Effects["card"], o.Effects["wallet"])
	if e := o.Events; e != nil {
		text += fmt.Sprintf(" %d events were written, and %d of them are outstanding. Time from a change to the effect of its event: p50 %.1f ms, p99 %.1f ms, max %.1f ms.",
			e.Written, e.Outstanding, e.Consumed.P50, e.Consumed.P99, e.Consumed.Max)
	}
	return text
}

// load says how well the rate was kept.
func (o *outcome) load() string {
	return fmt.Sprintf("%.1f requests a second were sent; 99%% of them at most %.1f ms late, the latest %.1f ms.", o.Pace.Achieved, o.Pace.Late.P99, o.Pace.Late.Max)
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// table has the requests by kind.
func (o *outcome) table() report.Table {
	t := report.Table{Title: "Latency by request, in ms", Note: o.compared(),
		Header: []string{"kind", "requests", "ok", "unexpected", "new", "replayed", "409", "422", "p50", "p95", "p99", "max"}}
	for _, r := range o.Rows {
		t.Rows = append(t.Rows, []any{r.Kind, r.Requests, r.OK, r.Unexpected, r.New, r.Replayed, r.InProgress, r.Refused,
			digits(r.P50), digits(r.P95), digits(r.P99), digits(r.Max)})
	}
	return t
}

func (o *outcome) page() (page report.Page, err error) {
	all := o.Rows[len(kinds)]
	tiles := []report.Tile{{Value: strconv.Itoa(all.Requests), Label: "requests"},
		{Value: fmt.Sprintf("%.1f/s", o.Pace.Achieved), Label: fmt.Sprintf("of %d/s asked for", o.Rate)}}
	for _, r := range o.Rows {
		if (r.Kind == string(newOrder) || r.Kind == string(replay)) && r.Requests > 0 {
			tiles = append(tiles, report.Tile{Value: digits(r.P50) + " ms", Label: r.Kind + ", p50"}, report.Tile{Value: digits(r.P99) + " ms", Label: r.Kind + ", p99"})
		}
	}
	if e := o.Events; e != nil && e.Written > 0 {
		tiles = append(tiles, report.Tile{Value: digits(e.Consumed.P99) + " ms", Label: "until an event has its effect, p99"})
	}
	if len(o.Memory) > 0 {
		peak := slices.Max(slices.Collect(maps.Values(o.Memory)))
		tiles = append(tiles, report.Tile{Value: fmt.Sprintf("%.0f MiB", mebibytes(peak)), Label: "memory of a replica, at its peak"})
	}
	attempts := make([]journal.Attempt, len(o.answers))
	for i, a := range o.answers {
		attempts[i] = a.Attempt
	}
	done := func(replayed bool) func(journal.Attempt) bool {
		return func(a journal.Attempt) bool { return a.Outcome() == journal.Succeeded && a.Replayed == replayed }
	}
	page = report.Page{Title: fmt.Sprintf("oncepay at %d requests a second for %s", o.Rate, o.Duration), Verdict: o.verdict(), Broken: !o.Passed,
		Tiles:    append(tiles, report.Tile{Value: strconv.Itoa(all.Unexpected), Label: "wrong answers"}),
		Legend:   "Requests are sent at their time, also while others wait for an answer. " + o.load(),
		Evidence: o.evidence(), Promises: o.promises(), Tables: []report.Table{o.table()},
		Command: fmt.Sprintf("task test:stress:all RATE=%d DURATION=%s", o.Rate, o.Duration),
		Notes:   []string{fmt.Sprintf("%s, %s, %d cores", time.Now().Format(time.RFC1123), runtime.Version(), runtime.NumCPU())}}
	page.Picture, err = report.Draw(attempts, []report.Line{{Name: "first requests", Of: done(false)}, {Name: "replays", Of: done(true)}}, nil)
	return page, err
}

func digits(milliseconds float64) string { return fmt.Sprintf("%.1f", milliseconds) }

func (o *outcome) writeFiles(out io.Writer) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(o.out, o.Run)
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	page, err := o.page()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "report   %s.html\ndata     %s.json\n", base, base)
	return page.Write(base + ".html")
}
