package main

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// drawPicture writes the chart as PNG.
func drawPicture(out io.Writer, s summary, c chart) error {
	var plots [][]*plot.Plot
	for _, p := range c.panels {
		plots = append(plots, []*plot.Plot{c.plot(p)})
	}
	n := len(plots)
	height := vg.Length(n*(panelHeight+headingHeight) + headHeight + footHeight)
	picture := vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(pictureDPI))
	canvas := draw.New(picture)
	write := func(text string, size, x, y vg.Length) {
		style := plot.New().Title.TextStyle // has the font
		style.Color, style.Font.Size, style.XAlign, style.YAlign = ink, size, draw.XLeft, draw.YBottom
		canvas.FillText(style, vg.Point{X: x, Y: y}, text)
	}
	write(title(s), 13, sideMargin, height-22)
	write(verdict(s), 9.5, sideMargin, height-37)
	write("Latency, on a logarithmic axis. A dot is an answer. Lines, for each "+report.Short(c.step)+
		": p50 solid, p95 dashed, p99 dotted.", 9.5, sideMargin, height-51)
	if n > 0 {
		tiles := draw.Tiles{Rows: n, Cols: 1, PadTop: headHeight + headingHeight, PadY: headingHeight,
			PadBottom: footHeight, PadLeft: sideMargin, PadRight: sideMargin}
		for i, row := range plot.Align(plots, tiles, canvas) {
			plots[i][0].Draw(row[0])
			write(heading(c.panels[i]), 11, sideMargin, plots[i][0].DataCanvas(row[0]).Max.Y+6)
		}
	}
	write("time since the start", 10, pictureWidth/2, 5)
	_, err := vgimg.PngCanvas{Canvas: picture}.WriteTo(out)
	return err
}

func heading(p panel) string {
	return fmt.Sprintf("%s (%s): %d, p50 %.1f, p95 %.1f, p99 %.1f, max %.1f ms", p.Name, p.About, p.row.Requests, p.row.P50, p.row.P95, p.row.P99, p.row.Max)
}

func (c chart) plot(p panel) *plot.Plot {
	drawn := plot.New()
	drawn.Y.Scale = plot.LogScale{} // no label: the library makes room for it as on a linear axis
	drawn.X.Tick.Marker = ticks(c.times(), time.Duration.Seconds, report.Short)
	drawn.Y.Tick.Marker = ticks(c.latency.Marks(), ms, report.Seconds)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = soft, soft
	drawn.Add(grid)
	colour := rgb(p.Light)
	pale := color.NRGBA{colour.R, colour.G, colour.B, 0x70}
	drawn.Add(&plotter.Scatter{XYs: points(p.dots), GlyphStyle: draw.GlyphStyle{Color: pale, Radius: 1.4, Shape: draw.CircleGlyph{}}})
	for i, spots := range [][]spot{p.p50, p.p95, p.p99} {
		for _, piece := range c.pieces(spots) {
			drawn.Add(&plotter.Line{XYs: points(piece), LineStyle: draw.LineStyle{Color: colour, Width: 1.6, Dashes: dashes[i]}})
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
