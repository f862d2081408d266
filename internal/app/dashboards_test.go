package app

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	alertsFile    = "../../deploy/prometheus/alerts.yml"
	dashboardFile = "../../deploy/grafana/dashboards/oncepay.json"
)

// TestDashboards_QueryMetricsThatExist compares the names in them with what a replica shows.
func TestDashboards_QueryMetricsThatExist(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.MailURL, cfg.MailFrom = "smtp://127.0.0.1:1", "shop@example.com"
	r := serveSeeded(t, cfg)
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).status)
	metrics, labels := shown(r.operations("/metrics").body)
	metrics = append(metrics, "up") // Prometheus's own, like these labels
	labels = append(labels, "instance", "job", "replica")

	queries := append(alertQueries(t), dashboardQueries(t)...)
	require.Greater(t, len(queries), 50)
	for _, query := range queries {
		askedMetrics, askedLabels := asked(query)
		require.NotEmpty(t, askedMetrics, query)
		require.Subset(t, metrics, askedMetrics, query)
		require.Subset(t, labels, askedLabels, query)
	}
}

func TestDashboards_QueriesAreRead(t *testing.T) {
	t.Parallel()
	metrics, labels := asked(`histogram_quantile(0.99, sum by (le, route) (rate(a_bucket{b="{c} d",e=~"f|g"}[5m]))) > 1e3 and on (h) max(i:j) unless k`)
	require.Equal(t, []string{"a_bucket", "i:j", "k"}, metrics)
	require.Equal(t, []string{"le", "route", "h", "b", "e"}, labels)
}

var (
	series    = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	labelled  = regexp.MustCompile(`([a-z_]+)=~?"[^"]*"`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	selector  = regexp.MustCompile(`\{(?:[^}"]|"[^"]*")*\}|\[[^\]]*\]|"[^"]*"`)
	word      = regexp.MustCompile(`\b[a-zA-Z_:][\w:]*\b(\s*\()?`)
	operators = []string{"and", "or", "unless", "by", "bool", "offset"}
)

// shown returns the names of metrics and labels on a page of /metrics.
func shown(page string) (metrics, labels []string) {
	for _, found := range series.FindAllStringSubmatch(page, -1) {
		metrics = append(metrics, found[1])
		for _, label := range labelled.FindAllStringSubmatch(found[2], -1) {
			labels = append(labels, label[1])
		}
	}
	slices.Sort(metrics)
	slices.Sort(labels)
	return slices.Compact(metrics), slices.Compact(labels)
}

// asked returns the names of metrics and labels in a query in PromQL.
func asked(query string) (metrics, labels []string) {
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		labels = append(labels, strings.FieldsFunc(group[1], func(c rune) bool { return c == ',' || c == ' ' })...)
	}
	query = grouping.ReplaceAllString(query, "")
	for _, braces := range selector.FindAllString(query, -1) {
		for _, label := range labelled.FindAllStringSubmatch(braces, -1) {
			labels = append(labels, label[1])
		}
	}
	for _, found := range word.FindAllString(selector.ReplaceAllString(query, ""), -1) {
		isFunction := strings.HasSuffix(found, "(")
		if !isFunction && !slices.Contains(operators, found) {
			metrics = append(metrics, found)
		}
	}
	return metrics, labels
}

// alertQueries returns what the alerts ask, and makes sure that each says what to do.
func alertQueries(t *testing.T) (queries []string) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["runbook"], rule.Alert)
			queries = append(queries, rule.Expr)
		}
	}
	return queries
}

// dashboardQueries returns what the dashboard asks, and makes sure that its panels have each a
// place of their own.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		require.False(t, ids[panel.ID], panel.Title)
		ids[panel.ID] = true
		at := panel.GridPos
		require.LessOrEqual(t, at.X+at.W, 24, panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "is where %s is", panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}
