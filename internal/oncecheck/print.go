package oncecheck

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"
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
	if s.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	} else {
		printReport(out, r, s.quiet)
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

func printReport(out io.Writer, r Report, quiet bool) {
	_, _ = fmt.Fprintf(out, "%s %s\n\n", r.Method, r.URL)
	for _, v := range r.Verdicts {
		if quiet && v.Outcome != Broken {
			continue
		}
		_, _ = fmt.Fprintf(out, "%-11s  %-14s  %s\n", v.Outcome, v.Rule, v.Claim)
		if v.Reason != "" {
			_, _ = fmt.Fprintf(out, "             %s\n", v.Reason)
		}
		printEvidence(out, v.Evidence)
	}
	if !quiet && len(r.Dialects) > 0 {
		printDialects(out, r.Dialects)
	}
	_, _ = fmt.Fprintf(out, "\n%s; %d requests in %s\n", r.Sum(), r.Requests, r.Elapsed.Round(100*time.Millisecond))
}

// printDialects prints what the API does in a column for each dialect.
func printDialects(out io.Writer, all []Trait) {
	_, _ = fmt.Fprintf(out, "\n%-20s", "dialect")
	for _, name := range Dialects {
		_, _ = fmt.Fprintf(out, " %-7s", name)
	}
	_, _ = fmt.Fprintln(out)
	for _, c := range all {
		_, _ = fmt.Fprintf(out, "%-20s", c.Name)
		for _, name := range Dialects {
			_, _ = fmt.Fprintf(out, " %-7s", c.Speaks[name])
		}
		_, _ = fmt.Fprintf(out, " %s\n", c.Seen)
	}
}

// Columns are the names of the dialects, for the page.
func (r Report) Columns() []string { return Dialects }

// Sum is the result in a few words.
func (r Report) Sum() string {
	return fmt.Sprintf("%d hold, %d broken, %d not decided", r.Count(Holds), r.Count(Broken), r.Count(NotDecided))
}

// maxShown bounds how many exchanges a text shows for a rule. JSON and the page have all of them.
const maxShown = 4

func printEvidence(out io.Writer, evidence []Exchange) {
	for i, e := range evidence {
		if i == maxShown {
			_, _ = fmt.Fprintf(out, "             … and %d more\n", len(evidence)-i)
			return
		}
		_, _ = fmt.Fprintf(out, "\n             # %s, at %.2f s for %.2f s\n%s", e.Note, e.Sent.Seconds(), (e.Answered - e.Sent).Seconds(), quote("> ", e.Request))
		if e.Error != "" {
			_, _ = fmt.Fprint(out, quote("! ", e.Error))
		}
		_, _ = fmt.Fprint(out, quote("< ", e.Response))
	}
	if len(evidence) > 0 {
		_, _ = fmt.Fprintln(out)
	}
}

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
