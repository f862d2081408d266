package oncecheck

import (
	_ "embed"
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

//go:embed report.html
var reportPage string

//go:embed badge.svg
var badgePicture string

// printRules lists the rules, or prints the page of one.
func printRules(out io.Writer, names []string) error {
	for _, name := range names {
		rule, ok := find(name)
		if !ok {
			return fmt.Errorf("there is no rule %q; --rules lists them", name)
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

// write writes the report in each form that was asked for.
func (s *settings) write(r Report, out io.Writer) error {
	if err := s.print(r, out); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for file, text := range map[string]string{s.page: reportPage, s.badge: badgePicture} {
		if file == "" {
			continue
		}
		if err := render(file, text, r); err != nil {
			return err
		}
	}
	return nil
}

// openFiles fails before anything is sent if a report could not be written.
func (s *settings) openFiles() error {
	for _, name := range []string{s.page, s.badge} {
		if name == "" {
			continue
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // a report is for everybody
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		_ = file.Close()
	}
	return nil
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

func render(file, text string, r Report) error {
	var out strings.Builder
	if err := template.Must(template.New("").Parse(text)).Execute(&out, r); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(out.String()), 0o644) //nolint:gosec // a report is for everybody
}

// reportText is the report for a terminal.
var reportText = texttemplate.Must(texttemplate.New("").Funcs(texttemplate.FuncMap{"quote": quote}).Parse(
	`{{.Method}} {{.URL}}

{{range .Verdicts}}{{printf "%-11s  %-14s  %s" .Outcome .Rule .Claim}}
{{with .Reason}}             {{.}}
{{end}}{{range .Shown}}
             # {{.Note}}, at {{printf "%.2f" .Sent.Seconds}} s for {{printf "%.2f" .Lasted.Seconds}} s
{{quote "> " .Request}}{{quote "! " .Error}}{{quote "< " .Response}}{{end}}{{with .More}}             … and {{.}} more
{{else}}{{if .Evidence}}
{{end}}{{end}}{{end}}{{if .Dialects}}
{{printf "%-20s" "dialect"}}{{range .Columns}}{{printf " %-7s" .}}{{end}}
{{range $one := .Dialects}}{{printf "%-20s" .Name}}{{range $.Columns}}{{printf " %-7s" (index $one.Speaks .)}}{{end}} {{.Seen}}
{{end}}{{end}}
{{.Sum}}; {{.Requests}} requests in {{.Elapsed.Round 100000000}}
`))

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
	return reportText.Execute(out, r)
}

// Columns are the names of the dialects, for the page.
func (r Report) Columns() []string { return Dialects }

// Sum is the result in a few words.
func (r Report) Sum() string {
	return fmt.Sprintf("%d hold, %d broken, %d not decided", r.Count(Holds), r.Count(Broken), r.Count(NotDecided))
}

// maxShown bounds how many exchanges a text shows for a rule. JSON and the page have all of them.
const maxShown = 4

// Shown is the evidence that a text shows.
func (v Verdict) Shown() []Exchange { return v.Evidence[:min(len(v.Evidence), maxShown)] }

// More is how many exchanges it does not show.
func (v Verdict) More() int { return len(v.Evidence) - len(v.Shown()) }

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
