// Package dashboard_test looks at the dashboard as Grafana would: it scrapes a stack during a fault
// campaign, asks the queries of each panel, and draws the answers. It is a module of its own,
// because the engine of Prometheus brings many modules.
package dashboard_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

// picture is where the dashboard is drawn to.
var picture = flag.String("picture", "", "the PNG file to write; none: nothing is kept")

// dashboard is what we read of Grafana's format.
type dashboard struct {
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	FieldConfig struct {
		Defaults struct {
			Unit     string
			Mappings []struct {
				Options map[string]struct{ Text string }
			}
			Thresholds struct {
				Steps []struct {
					Color string
					Value float64
				}
			}
		}
		Overrides []override
	}
	series []series
}

type target struct{ Expr, LegendFormat string }

// override changes how the series of a name, or of a pattern of names, look.
type override struct {
	Matcher    struct{ ID, Options string }
	Properties []struct {
		ID    string
		Value any
	}
}

// series is one line of a panel.
type series struct {
	name   string
	points []promql.FPoint
}

func TestDashboard_EveryPanelHasData(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/dashboards/oncepay.json")
	require.NoError(t, err)
	var shown dashboard
	require.NoError(t, json.Unmarshal(text, &shown))

	prometheus := startPrometheus(t)
	began := time.Now()
	runCampaign(t)
	prometheus.stop()
	from, to := prometheus.busy(t, began)
	for i, p := range shown.Panels {
		for _, asked := range p.Targets {
			found := prometheus.series(t, asked, from, to)
			require.NotEmpty(t, found, "%s: %s", p.Title, asked.Expr)
			shown.Panels[i].series = append(shown.Panels[i].series, found...)
		}
	}
	require.NoError(t, shown.draw(cmp.Or(*picture, filepath.Join(t.TempDir(), "dashboard.png")), from, to))
}

// runCampaign lets clients shop on a stack of its own for a minute, while Redis and a replica are
// killed. Its verdict is a matter of task test:faults; here it makes something to see.
func runCampaign(t *testing.T) {
	t.Helper()
	campaign := exec.CommandContext(t.Context(), "go", "run", "./loadtest/faults")
	campaign.Dir = "../.."
	campaign.Env = append(os.Environ(), fmt.Sprintf("PORT_OFFSET=%d", portOffset), "STACK_DIR=.stack-dashboard", "FAULTS_OUT="+t.TempDir(),
		"DURATION=60s", "CLIENTS=8", "SEED=1", "GENERATED=0", "FLOOR=1", "FAULTS=redis kill,replica kill", "FAULT_MIN=15s", "FAULT_MAX=20s")
	output, err := campaign.CombinedOutput()
	t.Logf("the campaign ended with %v:\n%s", err, output)
}
