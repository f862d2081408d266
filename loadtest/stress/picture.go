package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/oncepay/oncepay/loadtest/report"
)

const (
	pictureWidth, panelHeight, headHeight = 10 * vg.Inch, 140, 70
	pictureDPI                            = 110
	// steps are how many percentiles a line has, at most: a step needs some answers.
	steps = 30
)

var (
	soft   = color.Gray{0xe0}
	dashes = [][]vg.Length{nil, {5, 2.5}, {1, 2.5}} // of p50, p95 and p99
)

// init sets the library's font, a variable, once: pictures may be drawn at the same time.
func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// draw makes the PNG, with a panel for each class that had answers. All have the same axes, so that
// they can be compared. The step is that of their percentiles.
func (o *outcome) draw() (png []byte, step time.Duration, err error) {
	length, fastest, slowest := o.cfg.Duration, time.Hour, time.Microsecond
	for _, a := range o.all().answers {
		length = max(length, a.at)
		fastest, slowest = min(fastest, max(a.took, time.Microsecond)), max(slowest, a.took)
	}
	step = max(time.Second, (length / steps).Round(time.Second))
	var panels [][]*plot.Plot
	for _, class := range o.Classes {
		if class.Requests == 0 {
			continue
		}
		p := class.panel(step)
		p.X.Min, p.X.Max = 0, length.Seconds()
		p.Y.Min, p.Y.Max = math.Pow10(int(math.Floor(math.Log10(report.Milliseconds(fastest))))), math.Pow10(int(math.Ceil(math.Log10(report.Milliseconds(slowest)))))
		panels = append(panels, []*plot.Plot{p})
	}
	height := vg.Length(headHeight + len(panels)*panelHeight)
	picture := vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(pictureDPI))
	canvas := vgdraw.New(picture)
	head := plot.New().Title.TextStyle // has the font
	head.XAlign, head.YAlign = vgdraw.XCenter, vgdraw.YTop
	canvas.FillText(head, vg.Point{X: pictureWidth / 2, Y: height - 8}, o.title()+"\n"+o.verdict()+
		"\nLatency in ms, on a logarithmic axis. A dot is an answer. Lines, for each "+report.Short(step)+": p50 solid, p95 dashed, p99 dotted.")
	if len(panels) > 0 {
		panels[len(panels)-1][0].X.Label.Text = "seconds since the start"
		tiles := vgdraw.Tiles{Rows: len(panels), Cols: 1, PadTop: headHeight, PadY: 8, PadBottom: 4, PadLeft: 12, PadRight: 12}
		for i, row := range plot.Align(panels, tiles, canvas) {
			panels[i][0].Draw(row[0])
		}
	}
	var out bytes.Buffer
	_, err = vgimg.PngCanvas{Canvas: picture}.WriteTo(&out)
	return out.Bytes(), step, err
}

// panel has every answer of a class as a dot, and percentiles as lines.
func (r *row) panel(step time.Duration) *plot.Plot {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s (%s): %d, p50 %.1f, p95 %.1f, p99 %.1f, max %.1f ms", r.Kind, r.About, r.Requests, r.P50, r.P95, r.P99, r.Max)
	p.Title.TextStyle.Font.Size = 11
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1} // no label: the library makes room for it as on a linear axis
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = soft, soft
	pale := r.Colour
	pale.A = 0x70
	p.Add(grid, &plotter.Scatter{XYs: points(r.answers), GlyphStyle: vgdraw.GlyphStyle{Color: pale, Radius: 1.4, Shape: vgdraw.CircleGlyph{}}})
	for i, percent := range []int{50, 95, 99} {
		for _, piece := range r.percentiles(step, percent) {
			p.Add(&plotter.Line{XYs: points(piece), LineStyle: vgdraw.LineStyle{Color: r.Colour, Width: 1.6, Dashes: dashes[i]}})
		}
	}
	return p
}

func points(spots []spot) (points plotter.XYs) {
	for _, s := range spots {
		points = append(points, plotter.XY{X: s.at.Seconds(), Y: report.Milliseconds(max(s.took, time.Microsecond))})
	}
	return points
}
