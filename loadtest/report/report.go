// Package report has what the pages of load tests share: their head with tiles, promises and style,
// and the axes of their drawings.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Head is what a page begins with.
type Head struct {
	Title, Verdict string
	Broken         bool
	Tiles          []Tile
}

// Tile is a figure worth large letters. It is left out if nothing was measured: if it has no value.
type Tile struct{ Value, Label string }

// Promise is a line of the verdict.
type Promise struct {
	Text   string
	Broken int // how often
}

//go:embed parts.html
var parts string

// Parse makes a page of the text, which may use the templates "head" and "promises", and defines
// "style" with what it needs besides. It panics if the text is no template.
func Parse(text string) *template.Template {
	page := template.New("page").Funcs(template.FuncMap{"seconds": Seconds})
	return template.Must(template.Must(page.Parse(parts)).Parse(text))
}

// Seconds are what people read.
func Seconds(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%g ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Short leaves out what is zero: 5m, 1h.
func Short(at time.Duration) string {
	text := at.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
