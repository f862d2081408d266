package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
