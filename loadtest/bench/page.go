package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/load"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/oncepay/oncepay/internal/programs"
)

// levers ends the page. It is written by hand, and no .md: its links are those of the page.
//
//go:embed levers.txt
var levers string

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("").Option("missingkey=zero").
	Funcs(template.FuncMap{"number": number, "cell": cell}).Parse(pageText))

// head is what the page begins with, and what the parts found, by their names.
type head struct {
	Command string
	Began   time.Time
	Took    time.Duration
	Machine string
	Load    float64
	Step    time.Duration
	Rounds  int
	Found   map[string]map[string]any
}

// write writes the page and its pictures, and prints it.
func (b *bench) write(h head) error {
	folder := filepath.Join(filepath.Dir(b.cfg.page), "plots")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, p := range b.plots {
		if err := p.Save(plotWidth, plotHeight, filepath.Join(folder, name+".svg")); err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
	}
	var page strings.Builder
	if err := pageTemplate.Execute(&page, h); err != nil {
		return err
	}
	fmt.Fprintln(b.out, page.String())
	return os.WriteFile(b.cfg.page, []byte(page.String()+"\n"+levers), 0o644)
}

// String is the median, with the extremes if there was more than one round.
func (s spread) String() string {
	if s.least == s.most {
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.least), number(s.most))
}

var english = message.NewPrinter(language.English)

// number has three figures that count, or all of an integer, and commas between the thousands.
func number(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	}
	return english.Sprintf("%.0f", f)
}

// thisMachine says where the figures are from, and how busy it is. What is not found is left out.
func thisMachine(ctx context.Context) (machine string, busy float64) {
	model := "unknown model"
	if cpus, _ := cpu.InfoWithContext(ctx); len(cpus) > 0 {
		model = cpus[0].ModelName
	}
	if average, err := load.AvgWithContext(ctx); err == nil {
		busy = average.Load1
	}
	return fmt.Sprintf("%s, %s", model, programs.Versions(ctx)), busy
}
