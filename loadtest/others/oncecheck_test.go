package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/oncecheck"
	"github.com/oncepay/oncepay/internal/testenv"
)

// between is a proxy that sends requests to both replicas in turn.
func between(t *testing.T, replicas [2]string) string {
	t.Helper()
	var sent atomic.Int64
	transport := &http.Transport{DisableKeepAlives: true}
	server := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		u, err := url.Parse(replicas[sent.Add(1)%2])
		if err == nil {
			r.SetURL(u)
		}
	}})
	t.Cleanup(server.Close)
	return server.URL
}

// oncecheck finds what OTHERS.md says about these systems, and is not told which one it sees.
func TestOncecheck_FindsWhatTheCampaignsFound(t *testing.T) {
	t.Parallel()
	for system, want := range map[string][]string{
		"setnx":      {"other-body", "other-path", "survives"},
		"fiber":      {"two-at-once", "other-body", "other-path", "other-caller", "survives"},
		"fiber-lock": {"other-body", "other-path", "other-caller", "survives"},
	} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			redisURL := testenv.Redis(t)
			client, err := openRedis(redisURL)
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			s := &shop{answer: func(w http.ResponseWriter, n int64) {
				time.Sleep(50 * time.Millisecond) // what a handler needs for its effect
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte{byte('a' + n%26), byte('a' + n/26%26), byte('a' + n/676%26)})
			}}
			target := between(t, replicas(t, system, redisURL, s))
			report, err := oncecheck.Run(t.Context(), oncecheck.Config{
				Request: oncecheck.Request{URL: target + "/v1/orders", Body: `{"quantity":2}`,
					Header: http.Header{"Authorization": {"Bearer a"}, "Content-Type": {"application/json"}}},
				OtherURL: target + "/v1/refunds", OtherCaller: http.Header{"Authorization": {"Bearer b"}},
				Count:   func(context.Context) (int64, error) { return s.executions.Load(), nil },
				Between: func(ctx context.Context) error { return client.FlushDB(ctx).Err() },
			})
			require.NoError(t, err)
			require.Less(t, report.Elapsed, time.Minute)
			outcomes := map[string]oncecheck.Outcome{}
			for _, v := range report.Verdicts {
				outcomes[v.Rule] = v.Outcome
				t.Logf("%-11s %-14s %s", v.Outcome, v.Rule, v.Reason)
			}
			for _, rule := range want {
				require.Equal(t, oncecheck.Broken, outcomes[rule], rule)
			}
			for _, rule := range []string{"replay", "one-effect", "member-order"} {
				require.Equal(t, oncecheck.Holds, outcomes[rule], rule)
			}
		})
	}
}
