package main

import (
	"bytes"
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/oncepay/oncepay/loadtest/report"
)

// Sizes of the picture. A panel has its heading above it.
const (
	pictureWidth               = 10 * vg.Inch
	panelHeight, headingHeight = 110, 26
	headHeight, footHeight     = 54, 20
	sideMargin                 = 12
	pictureDPI                 = 110
)

var (
	ink, soft = color.Gray{0x22}, color.Gray{0xe0}
	dashes    = [][]vg.Length{nil, {5, 2.5}, {1, 2.5}} // of p50, p95 and p99
)

// init sets the library's font, a variable, once: pictures may be drawn at the same time.
func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

const (
	// steps are how many percentiles a line has, at most: a step needs some answers.
	steps = 30
	// marksOfTime are as many as have room on a narrow screen.
	marksOfTime = 7
)

// chart is what all panels have in common, so that they can be compared: the axes, and the step of
// time of the percentiles.
type chart struct {
	length, step time.Duration
	latency      report.Log
}

// draw makes the PNG, with a panel for each class that had answers. The length is that of the load.
func draw(s summary, all []*series, length time.Duration) (png []byte, step time.Duration, err error) {
	fastest, slowest := time.Hour, time.Duration(0)
	var shown []*series
	for _, class := range all {
		if len(class.answers) > 0 {
			shown = append(shown, class)
		}
		for _, a := range class.answers {
			length = max(length, a.at)
			fastest, slowest = min(fastest, a.took), max(slowest, a.took)
		}
	}
	c := chart{length, max(time.Second, (length / steps).Round(time.Second)), report.Around(fastest, slowest)}
	height := vg.Length(len(shown)*(panelHeight+headingHeight) + headHeight + footHeight)
	picture := vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(pictureDPI))
	canvas := vgdraw.New(picture)
	write := func(text string, size, x, y vg.Length) {
		style := plot.New().Title.TextStyle // has the font
		style.Color, style.Font.Size, style.XAlign, style.YAlign = ink, size, vgdraw.XLeft, vgdraw.YBottom
		canvas.FillText(style, vg.Point{X: x, Y: y}, text)
	}
	write(title(s), 13, sideMargin, height-22)
	write(verdict(s), 9.5, sideMargin, height-37)
	write("Latency, on a logarithmic axis. A dot is an answer. Lines, for each "+report.Short(c.step)+
		": p50 solid, p95 dashed, p99 dotted.", 9.5, sideMargin, height-51)
	if len(shown) > 0 {
		var plots [][]*plot.Plot
		for _, class := range shown {
			plots = append(plots, []*plot.Plot{c.panel(class)})
		}
		tiles := vgdraw.Tiles{Rows: len(shown), Cols: 1, PadTop: headHeight + headingHeight, PadY: headingHeight,
			PadBottom: footHeight, PadLeft: sideMargin, PadRight: sideMargin}
		for i, row := range plot.Align(plots, tiles, canvas) {
			plots[i][0].Draw(row[0])
			write(heading(shown[i]), 11, sideMargin, plots[i][0].DataCanvas(row[0]).Max.Y+6)
		}
	}
	write("time since the start", 10, pictureWidth/2, 5)
	var out bytes.Buffer
	_, err = vgimg.PngCanvas{Canvas: picture}.WriteTo(&out)
	return out.Bytes(), c.step, err
}

func heading(s *series) string {
	return fmt.Sprintf("%s (%s): %d, p50 %.1f, p95 %.1f, p99 %.1f, max %.1f ms", s.Name, s.About, s.row.Requests, s.row.P50, s.row.P95, s.row.P99, s.row.Max)
}

// panel has every answer of a class as a dot, and percentiles as lines.
func (c chart) panel(s *series) *plot.Plot {
	drawn := plot.New()
	drawn.Y.Scale = plot.LogScale{} // no label: the library makes room for it as on a linear axis
	drawn.X.Tick.Marker = ticks(report.Marks(c.length, c.length/marksOfTime), time.Duration.Seconds, report.Short)
	drawn.Y.Tick.Marker = ticks(c.latency.Marks(), ms, report.Seconds)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = soft, soft
	drawn.Add(grid)
	colour := rgb(s.Colour)
	pale := color.NRGBA{colour.R, colour.G, colour.B, 0x70}
	drawn.Add(&plotter.Scatter{XYs: points(s.answers), GlyphStyle: vgdraw.GlyphStyle{Color: pale, Radius: 1.4, Shape: vgdraw.CircleGlyph{}}})
	for i, percent := range []int{50, 95, 99} {
		for _, piece := range s.percentile(c.step, percent) {
			drawn.Add(&plotter.Line{XYs: points(piece), LineStyle: vgdraw.LineStyle{Color: colour, Width: 1.6, Dashes: dashes[i]}})
		}
	}
	drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max = 0, c.length.Seconds(), ms(c.latency.From), ms(c.latency.To)
	return drawn
}

func ticks(at []time.Duration, value func(time.Duration) float64, label func(time.Duration) string) (ticks plot.ConstantTicks) {
	for _, d := range at {
		ticks = append(ticks, plot.Tick{Value: value(d), Label: label(d)})
	}
	return ticks
}

func points(spots []spot) (points plotter.XYs) {
	for _, s := range spots {
		points = append(points, plotter.XY{X: s.at.Seconds(), Y: ms(max(s.took, time.Microsecond))})
	}
	return points
}

func rgb(hex string) (c color.NRGBA) {
	c.A = 0xff
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
		panic(err) // classes has them
	}
	return c
}
