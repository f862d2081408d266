package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// Sizes of the drawing: answers per second over latencies over the lanes of bars, all as high.
const (
	narrowest, widest, perSecond = 660, 12000, 4.5
	panel, lane, gap             = 190, 16, 8
	bucketWidth                  = 3.0
)

// classes are attempts whose outcomes are drawn together, from the bottom to the top.
var classes = []struct {
	name     string
	colour   color.RGBA
	outcomes []journal.Outcome
}{
	{"succeeded", color.RGBA{0x7f, 0xb6, 0x9a, 0xff}, []journal.Outcome{journal.Succeeded, journal.LookedUp}},
	{"finally refused", color.RGBA{0xc9, 0xd8, 0xa8, 0xff}, []journal.Outcome{journal.Refused, journal.Reused, journal.Expired}},
	{"told to come again", color.RGBA{0xe9, 0xc4, 0x6a, 0xff}, []journal.Outcome{journal.InProgress, journal.Rejected, journal.TurnedAway}},
	{"no answer, or 5xx", color.RGBA{0xd1, 0x49, 0x5b, 0xff}, []journal.Outcome{journal.Unknown}},
}

// Line is the latencies of some attempts: their median and their 99th percentile are drawn.
type Line struct {
	Name string
	Of   func(journal.Attempt) bool
}

// Bar is something that lasted, and its consequences, which are drawn paler.
type Bar struct {
	Lane           string
	From, To, Tail time.Duration
}

// lineColours are of the lines and then of the bars.
var lineColours = []color.RGBA{{0x3d, 0x6b, 0x99, 0xff}, {0xc1, 0x44, 0x0e, 0xff}, {0x33, 0x65, 0x8a, 0xff}}

// init sets the library's font, a variable, once: pictures may be drawn at the same time.
func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// Draw draws what clients saw over time, as SVG.
func Draw(attempts []journal.Attempt, lines []Line, bars []Bar) (template.URL, error) {
	length := time.Second
	for _, a := range attempts {
		length = max(length, a.Return)
	}
	width := min(max(length.Seconds()*perSecond, narrowest), widest)
	size := max(time.Second, time.Duration(bucketWidth/width*float64(length)).Round(time.Second))
	buckets := make([][]journal.Attempt, length/size+1) // by when they were answered
	for _, a := range attempts {
		buckets[a.Return/size] = append(buckets[a.Return/size], a)
	}
	panels := [][]*plot.Plot{{rates(buckets, size)}, {latencies(buckets, size, lines)}}
	height := panel
	if len(bars) > 0 {
		p, lanes := drawBars(bars)
		panels, height = append(panels, []*plot.Plot{p}), max(panel, lane*(lanes+3))
	}
	for _, p := range panels {
		p[0].X.Min, p[0].X.Max = 0, length.Seconds()
	}
	panels[len(panels)-1][0].X.Label.Text = "seconds since the start"
	// With its font: a browser's own may be wider, and texts would overlap.
	picture := vgsvg.NewWith(vgsvg.UseWH(vg.Length(width), vg.Length(len(panels)*height)), vgsvg.EmbedFonts(true))
	tiles := vgdraw.Tiles{Rows: len(panels), Cols: 1, PadLeft: 4, PadRight: 12, PadY: gap}
	for i, canvas := range plot.Align(panels, tiles, vgdraw.New(picture)) {
		panels[i][0].Draw(canvas[0])
	}
	var out bytes.Buffer
	_, err := picture.WriteTo(&out)
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(out.Bytes())), err //nolint:gosec // made here
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Legend.Top = title, true
	return p
}

// rates stacks the outcomes.
func rates(buckets [][]journal.Attempt, size time.Duration) *plot.Plot {
	p := newPlot("Answers per second")
	var areas []*plotter.Line
	floor := make([]float64, len(buckets))
	for _, class := range classes {
		area := &plotter.Line{FillColor: class.colour}
		for n, attempts := range buckets {
			for _, a := range attempts {
				if slices.Contains(class.outcomes, a.Outcome()) {
					floor[n] += 1 / size.Seconds()
				}
			}
			area.XYs = append(area.XYs, plotter.XY{X: (time.Duration(n) * size).Seconds(), Y: floor[n]})
		}
		areas = append(areas, area)
		p.Legend.Add(class.name, area)
	}
	for _, area := range slices.Backward(areas) { // each covers the lower part of the one above
		p.Add(area)
	}
	p.Y.Min, p.Y.Max = 0, max(1, 1.5*p.Y.Max) // the legend is above the areas
	p.Y.Tick.Marker = plot.TickerFunc(wholeTicks)
	return p
}

// wholeTicks labels some whole numbers.
func wholeTicks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'f', -1, 64)
		}
	}
	return ticks
}

func latencies(buckets [][]journal.Attempt, size time.Duration, lines []Line) *plot.Plot {
	p := newPlot("Latency in ms")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	for i, line := range lines {
		for percent, dashes := range map[int][]vg.Length{50: nil, 99: {3, 2}} {
			drawn := &plotter.Line{LineStyle: vgdraw.LineStyle{Color: lineColours[i], Width: 1.4, Dashes: dashes}}
			for n, attempts := range buckets {
				var took []time.Duration
				for _, a := range attempts {
					if line.Of(a) {
						took = append(took, a.Return-a.Invoke)
					}
				}
				if slices.Sort(took); len(took) > 0 {
					drawn.XYs = append(drawn.XYs, plotter.XY{X: (time.Duration(n) * size).Seconds(), Y: max(0.1, Milliseconds(Percentile(took, percent)))})
				}
			}
			if len(drawn.XYs) > 0 {
				p.Add(drawn)
				p.Legend.Add(fmt.Sprintf("%s, p%d", line.Name, percent), drawn)
			}
		}
	}
	p.Y.Min, p.Y.Max = 0.1, 100_000
	return p
}

// drawBars has a lane for each name, in the order of appearance.
func drawBars(bars []Bar) (p *plot.Plot, lanes int) {
	p = newPlot("")
	var ticks []plot.Tick
	for _, b := range bars {
		row := slices.IndexFunc(ticks, func(t plot.Tick) bool { return t.Label == b.Lane })
		if row < 0 {
			row = len(ticks)
			ticks = append(ticks, plot.Tick{Value: -float64(row), Label: b.Lane})
		}
		end := max(b.To, b.From+time.Second) // to be seen
		for _, piece := range []struct {
			from, to time.Duration
			alpha    uint8
		}{{end, end + b.Tail, 0x50}, {b.From, end, 0xff}} {
			colour := color.NRGBA{lineColours[2].R, lineColours[2].G, lineColours[2].B, piece.alpha}
			p.Add(&plotter.Line{LineStyle: vgdraw.LineStyle{Color: colour, Width: lane - 6},
				XYs: plotter.XYs{{X: piece.from.Seconds(), Y: -float64(row)}, {X: piece.to.Seconds(), Y: -float64(row)}}})
		}
	}
	p.Y.Tick.Marker, p.Y.Tick.Label.Font.Size, p.Y.Tick.Length = plot.ConstantTicks(ticks), 8, 0
	p.Y.Min, p.Y.Max = 0.5-float64(len(ticks)), 0.5
	return p, len(ticks)
}

// Percentile is the smallest value that so many percent of the values do not exceed. They are
// sorted, and there is at least one.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Milliseconds are those of a duration, down to a microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
