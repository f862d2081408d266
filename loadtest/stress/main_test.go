package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/internal/app"
	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/pspsim"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// serve runs the service, and returns how it is driven: at 10 requests/s for 20 seconds. Its 46
// slots are enough when a request takes four seconds, because other tests keep the machine busy.
func serve(t *testing.T) config {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	provider, err := pspsim.New(filepath.Join(t.TempDir(), "journal"), quiet)
	require.NoError(t, err)
	psp := httptest.NewServer(provider)
	t.Cleanup(func() { psp.Close(); require.NoError(t, provider.Close()) })
	database, cache := testenv.Postgres(t), testenv.RedisServer(t).URL
	cfg, err := app.ParseConfig([]string{"ENVIRONMENT=development", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0",
		"SHUTDOWN_NOTICE=0s", "DATABASE_URL=" + database, "DATABASE_MAX_CONNS=50", "REDIS_URL=" + cache, "PSP_URL=" + psp.URL})
	require.NoError(t, err)
	require.NoError(t, app.Seed(t.Context(), cfg, quiet))
	service, err := app.New(t.Context(), cfg, quiet)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx) }()
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); stop(); require.NoError(t, <-ended) })
	<-service.Ready()
	address, err := redis.ParseURL(cache)
	require.NoError(t, err)
	api := "http://" + service.Addr()
	return config{Rate: 10, Duration: 20 * time.Second, MaxLag: time.Minute, BaseURL: api, API1URL: api,
		API2URL: front(t, api, nil), OpsURL: "http://" + service.OpsAddr(), PSPURL: psp.URL, Database: database,
		RedisAddr: address.Addr, APIKey: "sk_test_demo", Out: t.TempDir()}
}

// front passes requests on, unless spoil has answered them, who may change them, too.
func front(t *testing.T, api string, spoil func(http.ResponseWriter, *http.Request) (answered bool)) string {
	t.Helper()
	target, err := url.Parse(api)
	require.NoError(t, err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil == nil || !spoil(w, r) {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// drive runs the whole command, and returns what it prints and the rules that it finds broken.
func drive(t *testing.T, cfg config) (text string, broken map[books.Rule]bool, err error) {
	t.Helper()
	var out bytes.Buffer
	err = run(t.Context(), cfg, &out)
	files, globErr := filepath.Glob(filepath.Join(cfg.Out, "*.json"))
	require.NoError(t, globErr)
	require.Len(t, files, 1, "%v %s", err, out.String())
	raw, readErr := os.ReadFile(files[0])
	require.NoError(t, readErr)
	var l struct {
		Requests   map[string]struct{ Requests int }
		Memory     float64 `json:"resident_bytes"`
		Violations []books.Violation
	}
	require.NoError(t, json.Unmarshal(raw, &l))
	require.Equal(t, 200, l.Requests["all"].Requests)
	require.Len(t, l.Requests, 9, "all kinds, and all of them together")
	require.Positive(t, l.Memory)
	page, readErr := os.ReadFile(strings.TrimSuffix(files[0], "json") + "html")
	require.NoError(t, readErr)
	for _, text := range []string{out.String(), string(page)} {
		require.Regexp(t, `p99 ms +max ms\n( .*\n)* +card payment +\d+ `, text)
	}
	broken = map[books.Rule]bool{}
	for _, v := range l.Violations {
		broken[v.Rule] = true
	}
	return out.String(), broken, err
}

func TestRun_PassesTheService(t *testing.T) {
	t.Parallel()
	text, broken, err := drive(t, serve(t))
	delete(broken, atRate) // a busy machine may miss the rate; nothing else may fail then
	require.Empty(t, broken, text)
	if err == nil {
		require.Contains(t, text, "\nPassed: ")
	}
}

func TestRun_FindsWhatABadServiceDoes(t *testing.T) {
	t.Parallel()
	t.Run("a replica that knows no keys", func(t *testing.T) {
		t.Parallel()
		cfg := serve(t)
		cfg.API2URL = front(t, cfg.BaseURL, func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Set("Idempotency-Key", "other-"+r.Header.Get("Idempotency-Key"))
			return false
		})
		text, broken, err := drive(t, cfg)
		require.ErrorContains(t, err, "promises were broken")
		require.Contains(t, text, "\nFailed: ")
		for _, rule := range []books.Rule{asDue, verify.OneHistory, verify.AnswersKept} {
			require.True(t, broken[rule], "%s: %s", rule, text)
		}
	})
	t.Run("500 now and then", func(t *testing.T) {
		t.Parallel()
		cfg := serve(t)
		var posts atomic.Int64
		cfg.API1URL = front(t, cfg.BaseURL, func(w http.ResponseWriter, r *http.Request) bool {
			if posts.Add(1)%17 > 0 {
				return false
			}
			http.Error(w, `{"code":"internal"}`, http.StatusInternalServerError)
			return true
		})
		text, broken, err := drive(t, cfg)
		require.ErrorContains(t, err, "promises were broken")
		require.True(t, broken[asDue], text)
	})
}

func TestConfig_FitsAStackByDefault(t *testing.T) {
	t.Parallel()
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: map[string]string{"RATE": "500"}})
	require.NoError(t, err)
	var it stack.Topology
	require.Equal(t, config{Rate: 500, Duration: time.Minute, BaseURL: it.URL(),
		API1URL: "http://" + it.Addr(stack.API1), API2URL: "http://" + it.Addr(stack.API2),
		OpsURL: "http://" + it.Ops(stack.API1), PSPURL: "http://" + it.Addr(stack.PSP),
		Database: localserver.PostgresURL(it.Addr(stack.Postgres)), RedisAddr: it.Addr(stack.Redis),
		APIKey: "sk_test_demo", Out: "loadtest/out", MaxLag: time.Second}, cfg)
	require.ErrorContains(t, run(t.Context(), config{Rate: 50}, nil), "above zero")
	require.ErrorContains(t, run(t.Context(), config{Duration: time.Second}, nil), "above zero")
}

func TestPace_SendsTheSecondOfARaceAtOnce(t *testing.T) {
	t.Parallel()
	p := pacer{vegeta.ConstantPacer{Freq: 50, Per: time.Second}, uint64(len(cycle))}
	for n := range len(cycle) {
		pause, stop := p.Pace(0, uint64(n))
		require.False(t, stop)
		require.Equal(t, isSecond(n), pause == 0)
		if isSecond(n) {
			require.False(t, isSecond(n-1), "of two, not of three")
		}
	}
	_, stop := p.Pace(0, p.planned)
	require.True(t, stop)
}
