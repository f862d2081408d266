// Command operations writes into docs/operations.md what other files say: all settings, from the
// comments and tags in internal/app/config.go, and all alerts, from deploy/prometheus/alerts.yml.
// Run it in the repository's root.
package main

import (
	"fmt"
	"os"
	"strings"
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
