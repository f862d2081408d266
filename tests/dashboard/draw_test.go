package dashboard_test

import (
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	imagedraw "image/draw"
	"image/png"
	"os"
	"regexp"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Pixels: a column and a row of Grafana's grid, and what is between panels and around their
// content.
const column, row, gap, padding vg.Length = 54, 26, 3, 8

var (
	paper, panelPaper = color.Gray{0xf2}, color.White
	ink, soft         = color.Gray{0x22}, color.Gray{0xdd}
	// colours are Grafana's names.
	colours = map[string]color.Color{
		"green": rgb(0x56a64b), "dark-green": rgb(0x19730e), "blue": rgb(0x3274d9), "orange": rgb(0xff780a),
		"dark-orange": rgb(0xc15c17), "light-orange": rgb(0xffb357), "light-red": rgb(0xff7383),
		"red": rgb(0xe02f44), "dark-red": rgb(0xad0317), "purple": rgb(0xa352cc), "yellow": rgb(0xe0b400),
	}
	others = []color.Color{
		rgb(0x3274d9), rgb(0xff780a), rgb(0x56a64b), rgb(0xa352cc), rgb(0xe02f44), rgb(0x00a0a0), rgb(0x8a6d3b), rgb(0xd683ce),
		rgb(0x777777), rgb(0xe0b400),
	}
)

func rgb(hex uint32) color.Color {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 0xff}
}

// draw writes all panels, each in its place, as a PNG file.
func (d dashboard) draw(path string, from, to time.Time) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	height := vg.Length(rows) * row
	picture := vgimg.NewWith(vgimg.UseWH(24*column, height), vgimg.UseDPI(72), vgimg.UseBackgroundColor(paper))
	for _, p := range d.Panels {
		at := p.GridPos
		p.draw(draw.Canvas{Canvas: picture, Rectangle: vg.Rectangle{
			Min: vg.Point{X: vg.Length(at.X)*column + gap, Y: height - vg.Length(at.Y+at.H)*row + gap},
			Max: vg.Point{X: vg.Length(at.X+at.W)*column - gap, Y: height - vg.Length(at.Y)*row - gap},
		}}, from, to)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	small := image.NewPaletted(picture.Image().Bounds(), palette.Plan9) // a quarter of the bytes
	imagedraw.Draw(small, small.Bounds(), picture.Image(), image.Point{}, imagedraw.Src)
	if err := png.Encode(file, small); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}

func (p panel) draw(area draw.Canvas, from, to time.Time) {
	if p.Type == "row" {
		write(area, area.Min.X+padding, area.Min.Y+4, 15, ink, p.Title)
		return
	}
	area.FillPolygon(panelPaper, []vg.Point{area.Min, {X: area.Max.X, Y: area.Min.Y}, area.Max, {X: area.Min.X, Y: area.Max.Y}})
	write(area, area.Min.X+padding, area.Max.Y-18, 13, ink, p.Title)
	switch p.Type {
	case "stat":
		points := p.series[0].points
		value := points[len(points)-1].F
		write(area, area.Min.X+padding, area.Min.Y+padding+14, 28, p.threshold(value), p.say(value))
	case "heatmap":
		p.plotHeat(draw.Crop(area, padding, -padding, padding, -28), from)
	default:
		p.plotLines(area, from, to)
	}
}

func write(area draw.Canvas, x, y, size vg.Length, ink color.Color, words string) {
	area.FillText(letters(size, ink), vg.Point{X: x, Y: y}, words)
}

func letters(size vg.Length, ink color.Color) text.Style {
	return text.Style{Color: ink, Font: font.From(plot.DefaultFont, size), Handler: plot.DefaultTextHandler}
}

// threshold is the colour of a value.
func (p panel) threshold(value float64) color.Color {
	name := ""
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if value >= step.Value {
			name = step.Color
		}
	}
	return colours[name]
}

// say formats a value in the panel's unit, or in words.
func (p panel) say(value float64) string {
	for _, mapping := range p.FieldConfig.Defaults.Mappings {
		if words, ok := mapping.Options[strconv.FormatFloat(value, 'f', -1, 64)]; ok {
			return words.Text
		}
	}
	return inUnit(value, p.FieldConfig.Defaults.Unit)
}

func inUnit(value float64, unit string) string {
	switch {
	case unit == "s" && value < 1:
		return fmt.Sprintf("%.3g ms", 1000*value)
	case unit == "s":
		return fmt.Sprintf("%.3g s", value)
	case unit == "percentunit":
		return fmt.Sprintf("%.3g %%", 100*value)
	case unit == "bytes":
		return fmt.Sprintf("%.0f MiB", value/(1<<20))
	case unit == "reqps" || unit == "ops":
		return fmt.Sprintf("%.3g/s", value)
	}
	return fmt.Sprintf("%.4g", value)
}

// look is how a series looks: overrides say it, or its place does.
type look struct {
	draw.LineStyle
	right bool // on an axis of its own, in its unit
	unit  string
}

func (p panel) lookOf(i int) look {
	found := look{LineStyle: draw.LineStyle{Color: others[i%len(others)], Width: 1.5}, unit: p.FieldConfig.Defaults.Unit}
	for _, o := range p.FieldConfig.Overrides {
		name := p.series[i].name
		if o.Matcher.Options != name && (o.Matcher.ID != "byRegexp" || !regexp.MustCompile(o.Matcher.Options).MatchString(name)) {
			continue
		}
		for _, property := range o.Properties {
			switch property.ID {
			case "color":
				colour, _ := property.Value.(map[string]any)["fixedColor"].(string)
				found.Color = colours[colour]
			case "custom.axisPlacement":
				found.right, found.Dashes = true, []vg.Length{6, 4}
			case "unit":
				found.unit = property.Value.(string)
			}
		}
	}
	return found
}

// most is the highest value of some series.
func most(all []series) (top float64) {
	for _, one := range all {
		for _, point := range one.points {
			top = max(top, point.F)
		}
	}
	return top
}

// plotLines draws the legend and the lines. A series with an axis of its own is scaled to the
// height, and its legend says what that is.
func (p panel) plotLines(area draw.Canvas, from, to time.Time) {
	var left []series
	for i, one := range p.series {
		if !p.lookOf(i).right {
			left = append(left, one)
		}
	}
	lines := p.newPlot()
	top := most(left) * 1.05
	if top == 0 {
		top = 1
	}
	x, y := area.Min.X+padding, area.Max.Y-34
	for i, one := range p.series {
		style, scale, name := p.lookOf(i), 1.0, one.name
		if style.right {
			own := most([]series{one})
			name += ", to " + inUnit(own, style.unit)
			scale = top / 1.05 / max(own, 1e-9)
		}
		if name == "" {
			name = p.Title
		}
		width := letters(11, nil).Width(name)
		if x+width+padding > area.Max.X {
			x, y = area.Min.X+padding, y-14
		}
		write(area, x, y, 11, style.Color, name)
		x += width + 14
		lines.Add(one.lines(style.LineStyle, from, scale)...)
	}
	lines.X.Min, lines.X.Max = 0, to.Sub(from).Seconds()
	lines.Y.Min, lines.Y.Max = 0, top
	lines.Draw(draw.Crop(area, padding, -padding, padding, y-area.Max.Y-4))
}

// newPlot is an empty plot with the panel's axes.
func (p panel) newPlot() *plot.Plot {
	empty := plot.New()
	empty.BackgroundColor = panelPaper
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = soft, soft
	empty.Add(grid)
	empty.X.Tick.Marker = marker(func(v float64) string { return fmt.Sprintf("%g s", v) })
	empty.Y.Tick.Marker = marker(func(v float64) string { return inUnit(v, p.FieldConfig.Defaults.Unit) })
	return empty
}

// marker labels ticks.
type marker func(float64) string

func (m marker) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, tick := range ticks {
		if tick.Label != "" {
			ticks[i].Label = m(tick.Value)
		}
	}
	return ticks
}

// lines are the stretches of a series without a gap.
func (s series) lines(style draw.LineStyle, from time.Time, scale float64) (all []plot.Plotter) {
	var stretch plotter.XYs
	for i, point := range s.points {
		at := time.UnixMilli(point.T)
		stretch = append(stretch, plotter.XY{X: at.Sub(from).Seconds(), Y: point.F * scale})
		if last := i == len(s.points)-1; last || time.UnixMilli(s.points[i+1].T).Sub(at) > interval {
			all = append(all, &plotter.Line{XYs: stretch, LineStyle: style})
			stretch = nil
		}
	}
	return all
}
