package dashboard_test

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// heat is a heatmap of buckets that include the smaller ones, as Prometheus has them.
type heat struct {
	buckets []series
	from    time.Time
}

func (h heat) Dims() (columns, rows int) { return len(h.buckets[0].points), len(h.buckets) }
func (h heat) X(column int) float64 {
	return time.UnixMilli(h.buckets[0].points[column].T).Sub(h.from).Seconds()
}
func (h heat) Y(row int) float64 { return float64(row) }
func (h heat) Z(column, row int) float64 {
	value := h.buckets[row].points[column].F
	if row > 0 {
		value -= h.buckets[row-1].points[column].F
	}
	if value <= 0 {
		return math.NaN() // is not painted
	}
	return value
}

// bound is the upper bound of a bucket.
func bound(bucket series) float64 {
	seconds, err := strconv.ParseFloat(bucket.name, 64)
	if err != nil {
		return math.Inf(1)
	}
	return seconds
}

func (p panel) plotHeat(area draw.Canvas, from time.Time) {
	h := heat{slices.SortedFunc(slices.Values(p.series), func(a, b series) int { return cmp.Compare(bound(a), bound(b)) }), from}
	painted := p.newPlot()
	painted.Add(plotter.NewHeatMap(h, blues{}))
	var ticks plot.ConstantTicks
	for i := 0; i < len(h.buckets); i += 2 { // each second one has room
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: "≤ " + inUnit(bound(h.buckets[i]), "s")})
	}
	painted.Y.Tick.Marker = ticks
	painted.Draw(area)
}

// blues are from light to dark.
type blues struct{}

var _ palette.Palette = blues{}

func (blues) Colors() (all []color.Color) {
	for i := range 10 {
		all = append(all, rgb(0xc6dbef-uint32(i)*0x140f09))
	}
	return all
}
