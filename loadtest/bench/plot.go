package main

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const (
	plotWidth, plotHeight = 18 * vg.Centimeter, 9 * vg.Centimeter
	// barsWidth is that of all bars of a group.
	barsWidth = 2.4 * vg.Centimeter
)

// drawBars draws times in µs: a group of bars for each name, with one for each name of the legend.
func drawBars(title string, groups, legend []string, value func(group, of int) float64) *plot.Plot {
	p := newPlot(title, "", "µs")
	width := barsWidth / vg.Length(len(legend))
	for i, name := range legend {
		bars := &plotter.BarChart{Values: make(plotter.Values, len(groups)), Width: width, Color: plotutil.Color(i),
			Offset: width * (vg.Length(i) - vg.Length(len(legend)-1)/2)}
		for g := range groups {
			bars.Values[g] = value(g, i)
		}
		p.Add(bars)
		p.Legend.Add(name, bars)
	}
	p.NominalX(groups...)
	p.X.Min, p.X.Max, p.Y.Min = -0.6, float64(len(groups))-0.4, 0
	p.Y.Max *= 1.5 // room for the legend
	return p
}

// drawLines draws curves, each of which is a name and then its points. Each step of the vertical
// axis is ten times the last.
func drawLines(title, x, y string, curves ...any) *plot.Plot {
	p := newPlot(title, x, y)
	_ = plotutil.AddLinePoints(p, curves...) // all have points
	p.Y.Min, p.Y.Scale, p.Y.Tick.Marker = 1, plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Max *= 10 // room for the legend
	p.Add(plotter.NewGrid())
	return p
}

// newPlot has its legend where a wide font of the reader's does not leave the picture.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.Legend.Padding = 2*vg.Millimeter, vg.Millimeter
	p.Legend.Top, p.Legend.Left, p.Legend.TextStyle.Font.Size = true, true, vg.Points(9)
	return p
}
