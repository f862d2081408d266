package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	// portOffset is that of the campaign's stack, which runs beside others.
	portOffset = 8600
	// interval is between two scrapes: a minute has no room for the 5 s of the configuration.
	interval = 2 * time.Second
)

// variables are Grafana's: it takes rates over four scrapes.
var variables = strings.NewReplacer("$__rate_interval", (4 * interval).String(), "$replica", ".*")

// server is what we need of a Prometheus. Its scraper and its storage would bring many more
// modules, and a minute fits into memory.
type server struct {
	memory *memory
	engine *promql.Engine
	stop   func() // ends the scrapes; queries come after it
}

// job is what we read of prometheus.yml.
type job struct {
	Name    string `yaml:"job_name"`
	Targets []struct {
		Targets []string          `yaml:"targets"`
		Labels  map[string]string `yaml:"labels"`
	} `yaml:"static_configs"`
}

// startPrometheus scrapes what our configuration names, on the ports of the campaign's stack.
func startPrometheus(t *testing.T) server {
	t.Helper()
	text, err := os.ReadFile("../../deploy/prometheus/prometheus.yml")
	require.NoError(t, err)
	var settings struct {
		Jobs []job `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &settings))
	require.NotEmpty(t, settings.Jobs)
	ctx, cancel := context.WithCancel(t.Context())
	var scrapes sync.WaitGroup
	s := server{
		memory: &memory{series: make(map[model.Fingerprint]kept)},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 2 * interval}),
		stop:   func() { cancel(); scrapes.Wait() },
	}
	for _, job := range settings.Jobs {
		for _, group := range job.Targets {
			for _, address := range group.Targets {
				added := model.Metric{"job": model.LabelValue(job.Name), "instance": model.LabelValue(address)}
				for name, value := range group.Labels {
					added[model.LabelName(name)] = model.LabelValue(value)
				}
				scrapes.Go(func() { s.scrapeUntil(ctx, moved(t, address), added) })
			}
		}
	}
	return s
}

// moved is an address of the configuration in the campaign's stack.
func moved(t *testing.T, address string) string {
	t.Helper()
	host, port, _ := strings.Cut(address, ":")
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	return fmt.Sprintf("http://%s:%d/metrics", host, number+portOffset)
}

// scrapeUntil keeps what a target shows, and whether it answered.
func (s server) scrapeUntil(ctx context.Context, url string, added model.Metric) {
	for next := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case at := <-next.C:
			samples, err := scrape(ctx, url)
			up := &model.Sample{Metric: model.Metric{model.MetricNameLabel: "up"}, Value: 1}
			if err != nil {
				up.Value = 0
			}
			s.memory.add(at, added, append(samples, up))
		}
	}
}

func scrape(ctx context.Context, url string) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	decoder := expfmt.SampleDecoder{Dec: expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(answer.Header)), Opts: &expfmt.DecodeOptions{}}
	var all, family model.Vector
	for {
		switch err := decoder.Decode(&family); err {
		case nil:
			all = append(all, family...)
		case io.EOF:
			return all, nil
		default:
			return nil, err
		}
	}
}

// busy returns when clients were first and last served at half of their fastest rate.
func (s server) busy(t *testing.T, since time.Time) (from, to time.Time) {
	t.Helper()
	served := s.series(t, target{Expr: "sum(rate(http_request_duration_seconds_count[$__rate_interval]))"}, since, time.Now())
	require.Len(t, served, 1)
	half := most(served) / 2
	busy := slices.DeleteFunc(served[0].points, func(p promql.FPoint) bool { return p.F < half })
	return time.UnixMilli(busy[0].T), time.UnixMilli(busy[len(busy)-1].T)
}

func (s server) ask(t *testing.T, query string, from, to time.Time) promql.Matrix {
	t.Helper()
	asked, err := s.engine.NewRangeQuery(t.Context(), s.memory, nil, query, from, to, interval)
	require.NoError(t, err, query)
	answer, err := asked.Exec(t.Context()).Matrix()
	require.NoError(t, err, query)
	return answer
}

// series returns the answer to a query of a panel, without what is not a number.
func (s server) series(t *testing.T, asked target, from, to time.Time) (all []series) {
	t.Helper()
	for _, found := range s.ask(t, variables.Replace(asked.Expr), from, to) {
		points := slices.DeleteFunc(found.Floats, func(p promql.FPoint) bool { return math.IsNaN(p.F) })
		if len(points) > 0 {
			all = append(all, series{nameOf(asked.LegendFormat, found.Metric), points})
		}
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// nameOf fills a legend such as {{replica}}, heap.
func nameOf(format string, metric labels.Labels) string {
	return placeholder.ReplaceAllStringFunc(format, func(name string) string {
		return metric.Get(strings.Trim(name, "{}"))
	})
}
