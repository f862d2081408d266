package oncecheck

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// check runs rules on a shop with a flaw.
func check(t *testing.T, flaw string, only ...string) Report {
	t.Helper()
	s, url := newShop(t, flaw)
	report, err := Run(t.Context(), Config{
		Request: Request{URL: url + "/orders", Body: `{"amount":5,"note":"{{unique}}"}`,
			Header: http.Header{"Authorization": {"Bearer a"}, "Content-Type": {"application/json"}}},
		OtherURL: url + "/refunds", OtherCaller: http.Header{"Authorization": {"Bearer b"}},
		Count: s.count, Between: s.forget, Only: only, Rate: 10_000, Patience: 3 * time.Second,
		Contract: &Contract{Key: "required", Kept: 1},
	})
	require.NoError(t, err)
	return report
}

func TestRules_CatchTheServerThatBreaksThem(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			report := check(t, rule.Name, rule.Name)
			require.Len(t, report.Verdicts, 1)
			v := report.Verdicts[0]
			require.Equal(t, Broken, v.Outcome, v.Reason)
			require.NotEmpty(t, v.Reason)
			require.NotEmpty(t, v.Evidence)
			require.Contains(t, v.Evidence[0].Request, "POST /")
			require.NotContains(t, v.Evidence[0].Request, "Bearer a")
		})
	}
}

func TestRules_HoldAtAServerWithoutFlaws(t *testing.T) {
	t.Parallel()
	report := check(t, "")
	require.Len(t, report.Verdicts, len(Rules))
	for _, v := range report.Verdicts {
		require.Equal(t, Holds, v.Outcome, "%s: %s %+v", v.Rule, v.Reason, v.Evidence)
	}
	require.LessOrEqual(t, report.Requests, DefaultMaxRequests/2, "the bound leaves room for retries")
}

// TestRules_OutwaitAConflict: a 409 that names no time is no answer to a request that may still be
// executed.
func TestRules_OutwaitAConflict(t *testing.T) {
	t.Parallel()
	for _, v := range check(t, "retry-after", "client-leaves", "lost-answer", "polite-retry").Verdicts {
		require.Equal(t, Holds, v.Outcome, "%s: %s", v.Rule, v.Reason)
	}
}

func TestRules_ADisturbanceThatFailsDecidesNothing(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "")
	report, err := Run(t.Context(), Config{Request: Request{URL: url, Body: "{}"}, Only: []string{"survives", "replay"},
		Between: func(context.Context) error { return errors.New("no such command") }})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Holds, NotDecided}, []Outcome{report.Verdicts[0].Outcome, report.Verdicts[1].Outcome})
	require.Contains(t, report.Verdicts[1].Reason, "no such command")
}

func TestRules_AKeyThatAnInvalidRequestBlocksIsStuck(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch key := r.Header.Get("Idempotency-Key"); {
		case taken[key]:
			w.WriteHeader(http.StatusConflict)
		case string(body) == invalid:
			taken[key] = true
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	report, err := Run(t.Context(), Config{Request: Request{URL: server.URL, Body: "{}"}, Only: []string{"error-then-key"}})
	require.NoError(t, err)
	require.Equal(t, Broken, report.Verdicts[0].Outcome)
	require.Contains(t, report.Verdicts[0].Reason, "stuck")
}

// TestRules_OneFlawBreaksOneRule: a replay with another status is no second effect.
func TestRules_OneFlawBreaksOneRule(t *testing.T) {
	t.Parallel()
	for _, v := range check(t, "replay").Verdicts {
		want := Holds
		if v.Rule == "replay" {
			want = Broken
		}
		require.Equal(t, want, v.Outcome, "%s: %s", v.Rule, v.Reason)
	}
}

func TestRules_SendUUIDsToAnAPIThatTakesNothingElse(t *testing.T) {
	t.Parallel()
	s, _ := newShop(t, "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := uuid.Parse(r.Header.Get("Idempotency-Key")); err != nil {
			http.Error(w, "the key is no UUID", http.StatusBadRequest)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	cfg := Config{Request: Request{URL: server.URL, Body: "{}"}, Only: []string{"replay", "long-key", "strange-keys", "similar-keys"}}
	report, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, "4 hold, 0 broken, 0 not decided", report.Sum())
}

func TestReplayMark_HasManyNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-Idempotent-Replay", "X-Idempotent-Replayed", "Idempotency-Replayed", "X-Idempotency-Cached", "X-Cache-Hit"} {
		require.Equal(t, name+": true", Exchange{header: http.Header{name: {"true"}}}.replayMark())
	}
	require.Empty(t, Exchange{header: http.Header{"Idempotency-Key": {"k"}, "X-Cache-Hit": {"false"}}}.replayMark())
}

func TestRules_HaveAPageEach(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules {
		require.Regexp(t, `(?s)^# .+\.\n\n\*\*Why\.\*\* .+\n\n\*\*How it is checked\.\*\* .+\n\n\*\*What helps\.\*\* .+\n$`, rule.Page(), rule.Name)
	}
	files, err := pages.ReadDir("pages")
	require.NoError(t, err)
	require.Len(t, files, len(Rules))
	list, err := os.ReadFile("../../docs/oncecheck.md")
	require.NoError(t, err)
	for _, rule := range Rules {
		require.Contains(t, string(list), "["+"`"+rule.Name+"`"+"](../internal/oncecheck/pages/"+rule.Name+".md): "+rule.Claim()+"\n")
	}
}

func TestRules_WithoutACountDecideNoEffects(t *testing.T) {
	t.Parallel()
	_, url := newShop(t, "")
	report, err := Run(t.Context(), Config{Request: Request{URL: url, Body: "{}"}, Only: []string{"replay", "one-effect", "other-caller"}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Holds, NotDecided, NotDecided},
		[]Outcome{report.Verdicts[0].Outcome, report.Verdicts[1].Outcome, report.Verdicts[2].Outcome})
}

func TestRun_SendsNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	s, url := newShop(t, "")
	report, err := Run(t.Context(), Config{Request: Request{URL: url, Body: "{}"}, Count: s.count, MaxRequests: 20, Rate: 10_000})
	require.NoError(t, err)
	require.LessOrEqual(t, report.Requests, 20)
	require.Equal(t, NotDecided, report.Verdicts[len(report.Verdicts)-2].Outcome)
}

// TestRules_LoseAnswersOfSeveralLengths: the first answer, by which the moments are chosen, is
// longer than most of the others.
func TestRules_LoseAnswersOfSeveralLengths(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	answers := sync.Map{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := orders.Add(1)
		body, _ := answers.LoadOrStore(r.Header.Get("Idempotency-Key"), strings.Repeat("x", 7+int(n%3)))
		_, _ = io.WriteString(w, body.(string))
	}))
	t.Cleanup(server.Close)
	report, err := Run(t.Context(), Config{Request: Request{URL: server.URL, Body: "{}"}, Only: []string{"lost-answer"}})
	require.NoError(t, err)
	require.Contains(t, report.Verdicts[0].Reason, "nothing counts", "each answer was lost")
}
