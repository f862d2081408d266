// Package report writes the pages of load tests: a drawing, figures and promises.
package report

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// Page is one self-contained HTML page about a run.
type Page struct {
	Title, Verdict string
	Broken         bool
	Figures        string // as a terminal shows them
	Picture        template.URL
	Legend         string // what is special about the picture
	Evidence       string // of violations: what was seen
	Promises       []Promise
	Command        string // repeats the run
	Notes          []string
	NotCovered     []string
}

// Promise is a rule, and how often it was broken.
type Promise struct {
	Rule   books.Rule `json:"rule"`
	Broken int        `json:"broken"`
}

// Promises are the rules that were checked, and every other one that is broken.
func Promises(checked []books.Rule, found []books.Violation) (all []Promise) {
	times := map[books.Rule]int{}
	for _, v := range found {
		if times[v.Rule]++; !slices.Contains(checked, v.Rule) {
			checked = append(slices.Clone(checked), v.Rule)
		}
	}
	for _, rule := range checked {
		all = append(all, Promise{rule, times[rule]})
	}
	return all
}

//go:embed page.html
var text string

var page = template.Must(template.New("page").Parse(text))

// Write writes the page into a file.
func (p Page) Write(path string) error {
	var text bytes.Buffer
	if err := page.Execute(&text, p); err != nil {
		return fmt.Errorf("draw the page: %w", err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// Progress prints the line again and again, until it is stopped. The line is asked for in a
// goroutine of its own.
func Progress(out io.Writer, line func() string) (stop func()) {
	return shop.Beside(context.Background(), func(ctx context.Context) {
		for wait.Pause(ctx, 5*time.Second) == nil {
			fmt.Fprintln(out, line())
		}
	})
}

// Seconds are what people read.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
