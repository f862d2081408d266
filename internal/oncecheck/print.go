package oncecheck

import (
	"embed"
	"encoding/json"
	"errors"
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
	for _, name := range names {
		rule, err := find(name)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprint(out, rule.Page())
	}
	if len(names) > 0 {
		return nil
	}
	for _, rule := range Rules {
		_, _ = fmt.Fprintf(out, "%-14s  %s\n", rule.Name, rule.Claim())
	}
	return nil
}

// reportAs returns the function of a flag, which names a file for the report. It is opened at once:
// if it cannot be, nothing is sent.
func (s *settings) reportAs(form string) func(string) error {
	return func(name string) error {
		file, err := os.Create(name) //nolint:gosec // the user names the file
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		s.reports[file] = form
		return nil
	}
}

// write writes the report in each form that was asked for.
func (s *settings) write(r Report, out io.Writer) error {
	err := s.print(r, out)
	for file, form := range s.reports {
		err = errors.Join(err, template.Must(template.ParseFS(forms, form)).Execute(file, r), file.Close())
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
	if s.quiet {
		r.Verdicts = slices.DeleteFunc(slices.Clone(r.Verdicts), func(v Verdict) bool { return v.Outcome != Broken })
		r.Dialects = nil
	}
	const form = "report.txt"
	text := texttemplate.New(form).Funcs(texttemplate.FuncMap{"quote": quote})
	return texttemplate.Must(text.ParseFS(forms, form)).Execute(out, r)
}

// showProgress names the rule that is being checked, in one line of a terminal. The function that
// is returned removes the line.
func (s *settings) showProgress(out io.Writer) (stop func()) {
	file, _ := out.(*os.File)
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	n := 0
	s.cfg.Progress = func(rule string) {
		n++
		_, _ = fmt.Fprintf(out, "\r\x1b[Kchecking rule %d: %s", n, rule)
	}
	return func() { _, _ = fmt.Fprint(out, "\r\x1b[K") }
}

// Columns are the names of the dialects, for the page.
func (r Report) Columns() []string { return Dialects }

// Sum is the result in a few words.
func (r Report) Sum() string {
	return fmt.Sprintf("%d hold, %d broken, %d not decided", r.Count(Holds), r.Count(Broken), r.Count(NotDecided))
}

// Lasted is the time until the answer.
func (e Exchange) Lasted() time.Duration { return e.Answered - e.Sent }

// quote puts a mark before each line.
func quote(mark, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			fmt.Fprintf(&out, "             %s%s\n", mark, line)
		}
	}
	return out.String()
}
