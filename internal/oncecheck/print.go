package oncecheck

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"
)

// forms are the templates of a report: for a terminal, for a browser, and as a picture.
//
//go:embed report.txt report.html badge.svg
var forms embed.FS

// printRules lists the rules, or prints the pages of some.
func printRules(out io.Writer, names []string) error {
	for _, rule := range Rules {
		if len(names) == 0 {
			_, _ = fmt.Fprintf(out, "%-14s  %s\n", rule.Name, rule.Claim())
		} else if slices.Contains(names, rule.Name) {
			_, _ = fmt.Fprint(out, rule.Page())
		}
	}
	return known(names)
}

// write writes the report in each form that was asked for.
func (s *settings) write(r Report, out io.Writer) error {
	err := s.print(r, out)
	for form, name := range map[string]string{"report.html": s.page, "badge.svg": s.badge} {
		if name == "" || err != nil {
			continue
		}
		var text strings.Builder
		if err = template.Must(template.ParseFS(forms, form)).Execute(&text, r); err == nil {
			err = os.WriteFile(name, []byte(text.String()), 0o644) //nolint:gosec // the user names the file
		}
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// print writes JSON or text, of which quiet leaves what is broken.
func (s *settings) print(r Report, out io.Writer) error {
	if s.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	shown := r.Verdicts // the sum is of all
	if s.quiet {
		shown = slices.DeleteFunc(slices.Clone(shown), func(v Verdict) bool { return v.Outcome != Broken })
		r.Dialects = nil
	}
	return texttemplate.Must(texttemplate.ParseFS(forms, "report.txt")).Execute(out, struct {
		Report

		Shown []Verdict
	}{r, shown})
}

// Columns are the names of the dialects, for the page.
func (r Report) Columns() []string { return Dialects }

// Sum is the result in a few words.
func (r Report) Sum() string {
	return fmt.Sprintf("%d hold, %d broken, %d not decided", r.Count(Holds), r.Count(Broken), r.Count(NotDecided))
}

// Lasted is the time until the answer.
func (e Exchange) Lasted() time.Duration { return e.Answered - e.Sent }

// Lines are what was sent and what came back, with a mark before each line.
func (e Exchange) Lines() (lines []string) {
	for _, part := range [][2]string{{"> ", e.Request}, {"! ", e.Error}, {"< ", e.Response}} {
		for line := range strings.Lines(part[1]) {
			lines = append(lines, part[0]+strings.TrimRight(line, "\r\n"))
		}
	}
	return lines
}
