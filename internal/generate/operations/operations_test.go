package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func settings(t *testing.T) []setting {
	t.Helper()
	all, err := readSettings(root + "/" + settingsSource)
	require.NoError(t, err)
	return all
}

func TestPage_IsUpToDate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/" + page)
	require.NoError(t, err)
	made, err := generate(root)
	require.NoError(t, err)
	require.Equal(t, made, string(text), "run: task generate")
}

func TestSettings_AreExplained(t *testing.T) {
	t.Parallel()
	require.Greater(t, len(settings(t)), 30)
	for _, s := range settings(t) {
		require.NotEmpty(t, s.variable, s.field)
		require.Contains(t, s.comment, s.field, "the comment begins with the field's name")
	}
}

func TestSettings_AreNamedAsVariables(t *testing.T) {
	t.Parallel()
	made := settingsTable(settings(t))
	for _, s := range settings(t) {
		require.Contains(t, made, "| `"+s.variable+"` |")
		require.NotContains(t, made, " "+s.field+" ")
	}
	require.Contains(t, made, "| `IDEMPOTENCY_LEASE` | `15s` | How long a key stays taken")
}

func TestAlerts_SayWhatTheyMeanAndWhatToDo(t *testing.T) {
	t.Parallel()
	all, err := readAlerts(root + "/" + alertsSource)
	require.NoError(t, err)
	require.Greater(t, len(all), 20)
	for _, a := range all {
		require.Contains(t, []string{"page", "ticket"}, a.Labels.Severity, a.Alert)
		require.NotEmpty(t, a.Annotations.Summary, a.Alert)
		require.NotEmpty(t, a.Annotations.Runbook, a.Alert)
	}
	require.NotContains(t, alertsTable(all), "{{")
}

func TestReplace_NeedsItsMarks(t *testing.T) {
	t.Parallel()
	_, err := replace("no marks", settingsSource, "table")
	require.ErrorContains(t, err, "lacks the marks")
}
