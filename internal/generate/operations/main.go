// Command operations writes into docs/operations.md what other files say: all settings, from the
// comments and tags in internal/app/config.go, and all alerts, from deploy/prometheus/alerts.yml.
// Run it in the repository's root.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	page           = "docs/operations.md"
	settingsSource = "internal/app/config.go"
	alertsSource   = "deploy/prometheus/alerts.yml"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "operations:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	made, err := generate(root)
	if err != nil {
		return err
	}
	return os.WriteFile(root+"/"+page, []byte(made), 0o644)
}

// generate returns the page with both tables made anew.
func generate(root string) (string, error) {
	text, err := os.ReadFile(root + "/" + page)
	if err != nil {
		return "", err
	}
	settings, err := readSettings(root + "/" + settingsSource)
	if err != nil {
		return "", err
	}
	alerts, err := readAlerts(root + "/" + alertsSource)
	if err != nil {
		return "", err
	}
	made, err := replace(string(text), settingsSource, settingsTable(settings))
	if err != nil {
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
	fields := file.Scope.Lookup("Config").Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields
	for _, f := range fields.List {
		literal, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return nil, err
		}
		tag := reflect.StructTag(literal)
		settings = append(settings, setting{f.Names[0].Name, tag.Get("env"), tag.Get("envDefault"), f.Doc.Text()})
	}
	return settings, nil
}

// verb begins most comments after the field's name, and is left out in the table.
var verb = regexp.MustCompile(`^\w+ (is|are) `)

// settingsTable is the settings in Markdown.
func settingsTable(settings []setting) string {
	var out strings.Builder
	out.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	for _, s := range settings {
		meaning := strings.Join(strings.Fields(s.comment), " ")
		if verb.MatchString(meaning) {
			meaning = verb.ReplaceAllString(meaning, "")
		} else {
			meaning = strings.TrimPrefix(meaning, s.field+" ")
		}
		for _, other := range settings {
			meaning = regexp.MustCompile(`\b`+other.field+`\b`).ReplaceAllString(meaning, "`"+other.variable+"`")
		}
		value := ""
		if s.value != "" {
			value = "`" + s.value + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", s.variable, value, strings.ToUpper(meaning[:1])+meaning[1:])
	}
	return out.String()
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
	var out strings.Builder
	out.WriteString("| alert | urgency | means | what to do |\n|---|---|---|---|\n")
	for _, a := range all {
		meaning := value.ReplaceAllString(label.ReplaceAllString(a.Annotations.Summary, "*$1*"), "N")
		action := strings.ReplaceAll(strings.TrimSpace(a.Annotations.Runbook), "|", "\\|")
		action = strings.NewReplacer("<", "&lt;", "*", "\\*").Replace(action)
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", a.Alert, a.Labels.Severity, meaning, action)
	}
	return out.String()
}
