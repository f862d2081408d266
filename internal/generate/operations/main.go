// Command operations writes into docs/operations.md what other files say: all settings, from the
// comments and tags in internal/app/config.go, and all alerts, from deploy/prometheus/alerts.yml.
// Run it in the repository's root.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	page           = "docs/operations.md"
	settingsSource = "internal/app/config.go"
	alertsSource   = "deploy/prometheus/alerts.yml"
)

func main() {
	made, err := generate(".")
	if err == nil {
		err = os.WriteFile(page, []byte(made), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operations:", err)
		os.Exit(1)
	}
}

// generate returns the page with both tables made anew.
func generate(root string) (string, error) {
	text, pageErr := os.ReadFile(root + "/" + page)
	settings, settingsErr := readSettings(root + "/" + settingsSource)
	alerts, alertsErr := readAlerts(root + "/" + alertsSource)
	made, err := replace(string(text), settingsSource, settingsTable(settings))
	if err := errors.Join(pageErr, settingsErr, alertsErr, err); err != nil {
		return "", err
	}
	return replace(made, alertsSource, alertsTable(alerts))
}

// replace puts a table between the marks of its source.
func replace(text, source, table string) (string, error) {
	begin, end := "<!-- made by task generate from "+source+" -->\n", "<!-- end of "+source+" -->\n"
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("%s lacks the marks of %s", page, source)
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}

// setting is a field of Config.
type setting struct{ field, variable, value, comment string }

// readSettings returns the fields of Config in their order.
func readSettings(name string) (settings []setting, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, f := range file.Scope.Lookup("Config").Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		settings = append(settings, setting{f.Names[0].Name, tag.Get("env"), tag.Get("envDefault"), strings.Join(strings.Fields(f.Doc.Text()), " ")})
	}
	return settings, nil
}

// verb begins most comments after the field's name, and is left out in the table.
var verb = regexp.MustCompile(`^\w+ (is|are) `)

// settingsTable is the settings in Markdown.
func settingsTable(settings []setting) string {
	table := "| variable | default | meaning |\n|---|---|---|\n"
	for _, s := range settings {
		meaning := strings.TrimPrefix(verb.ReplaceAllString(s.comment, ""), s.field+" ")
		for _, other := range settings {
			meaning = regexp.MustCompile(`\b`+other.field+`\b`).ReplaceAllString(meaning, "`"+other.variable+"`")
		}
		value := ""
		if s.value != "" {
			value = "`" + s.value + "`"
		}
		table += fmt.Sprintf("| %#q | %s | %s |\n", s.variable, value, strings.ToUpper(meaning[:1])+meaning[1:])
	}
	return table
}

// alert is a rule of Prometheus.
type alert struct {
	Alert       string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Runbook string }
}

func readAlerts(name string) (all []alert, err error) {
	rules, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(rules, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", alertsSource, err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all, nil
}

// Prometheus puts values into summaries.
var (
	label = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	value = regexp.MustCompile(`\{\{ \$value.*?\}\}`)
)

// alertsTable is the alerts in Markdown.
func alertsTable(all []alert) string {
	table := "| alert | urgency | means | what to do |\n|---|---|---|---|\n"
	for _, a := range all {
		meaning := value.ReplaceAllString(label.ReplaceAllString(a.Annotations.Summary, "*$1*"), "N")
		action := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(strings.TrimSpace(a.Annotations.Runbook))
		table += fmt.Sprintf("| %#q | %s | %s | %s |\n", a.Alert, a.Labels.Severity, meaning, action)
	}
	return table
}
