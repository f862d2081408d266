package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.NoLeaks()) }

// drive runs the whole command against a fake shop at 100/s for two seconds.
func drive(t *testing.T, f func(*fakeShop)) (text string, s *outcome, err error) {
	t.Helper()
	fake, url := newFakeShop(t)
	f(fake)
	folder := t.TempDir()
	environ := []string{"RATE=100", "DURATION=2s", "STRESS_OUT=" + folder, "DATABASE_URL=none"}
	for _, name := range []string{"BASE_URL", "API1_URL", "API2_URL", "OPS1_URL", "OPS2_URL", "PSP_URL"} {
		environ = append(environ, name+"="+url)
	}
	var out bytes.Buffer
	err = run(t.Context(), nil, environ, &out)
	files, globErr := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, globErr)
	require.Len(t, files, 1, "%v %s", err, out.String())
	raw, readErr := os.ReadFile(files[0])
	require.NoError(t, readErr)
	s = &outcome{}
	require.NoError(t, json.Unmarshal(raw, s))
	return out.String(), s, err
}

func TestRun_PassesAHealthyShop(t *testing.T) {
	t.Parallel()
	text, s, err := drive(t, func(*fakeShop) {})
	require.Empty(t, s.Violations)
	// A busy machine may miss the rate. Nothing else may fail then, and the verdict must say so.
	require.Equal(t, s.Pace.Kept, s.Passed, text)
	require.Equal(t, s.Pace.Kept, err == nil, text)
	require.Equal(t, s.Pace.Kept, strings.Contains(text, "\nPassed: "), text)
	require.Equal(t, map[string]uint64{"api-1": 32 << 20, "api-2": 32 << 20}, s.Memory)

	all := s.Rows[len(kinds)]
	require.Equal(t, 200, all.Requests)
	for _, r := range s.Rows {
		require.NotZero(t, r.Requests, "no %s was sent", r.Kind)
		require.Equal(t, r.Requests, r.OK, r.Kind)
	}
	require.Equal(t, all.New, s.Effects["order"]+s.Effects["card"]+s.Effects["wallet"])
	require.Regexp(t, `report +\S+\.html\ndata +\S+\.json\n$`, text)
	files, err := filepath.Glob("stress-*")
	require.NoError(t, err)
	require.Empty(t, files, "files belong into STRESS_OUT")
}

func TestRun_WaitsForABusyShop(t *testing.T) {
	t.Parallel()
	_, s, _ := drive(t, func(f *fakeShop) { f.busy = true }) // a slow machine fails the rate, which is not the point here
	require.Empty(t, s.Unread)
	require.Empty(t, s.Violations)
}

func TestRun_FindsFaultyShops(t *testing.T) {
	t.Parallel()
	t.Run("an order per duplicate", func(t *testing.T) {
		t.Parallel()
		text, s, err := drive(t, func(f *fakeShop) { f.forgetful = true })
		require.ErrorIs(t, err, errOff)
		require.Contains(t, text, "\nFailed: ")
		for _, rule := range []books.Rule{oneEffect, sameBytes, asAnswered} {
			require.Contains(t, broken(s), rule)
		}
	})
	t.Run("no charges", func(t *testing.T) {
		t.Parallel()
		_, s, err := drive(t, func(f *fakeShop) { f.uncharged = true })
		require.ErrorIs(t, err, errOff)
		require.Equal(t, []books.Rule{books.OneCharge}, broken(s))
	})
	t.Run("500 now and then", func(t *testing.T) {
		t.Parallel()
		_, s, err := drive(t, func(f *fakeShop) { f.failEvery = 17 })
		require.ErrorIs(t, err, errOff)
		require.Contains(t, broken(s), answeredAsDue)
		require.NotZero(t, s.Rows[len(kinds)].Unexpected)
	})
}

func TestConfig_IsRead(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]string{"--short"}, []string{"RATE=500", "BASE_URL=http://x"})
	require.NoError(t, err)
	require.Equal(t, shortDuration, cfg.Duration)
	require.Equal(t, "http://x", cfg.BaseURL)
	require.Equal(t, 5000, cfg.requests())
	for _, environ := range []string{"RATE=0", "RATE=x", "DURATION=-1s", "DURATION=60"} {
		_, err := parseConfig(nil, []string{environ})
		require.Error(t, err, environ)
	}
}

func TestDue_SendsDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	cfg := config{Rate: 50}
	require.Equal(t, duplicate, slot(2))
	require.Equal(t, 20*time.Millisecond, cfg.due(1))
	require.Equal(t, cfg.due(1), cfg.due(2))
	require.Equal(t, 60*time.Millisecond, cfg.due(3))
	for n, k := range cycle {
		if k == duplicate {
			require.Contains(t, []kind{pairOrder, pairCard, pairWallet}, cycle[n-1])
		}
	}
}

// sent are requests whose times are so many times as late as they should be.
func sent(cfg config, requests, factor int) (answers []answer) {
	for n := range requests {
		answers = append(answers, answer{Attempt: journal.Attempt{Number: n, Invoke: time.Duration(factor) * cfg.due(n)}})
	}
	return answers
}

func TestPunctuality_ShowsLateRequests(t *testing.T) {
	t.Parallel()
	cfg := config{Rate: 100}
	require.Equal(t, punctual{Achieved: 100, Kept: true}, cfg.punctuality(sent(cfg, 101, 1)))
	late := cfg.punctuality(sent(cfg, 101, 2))
	require.Equal(t, punctual{Achieved: 50, Late: latency{P50: late.Late.P50, P95: late.Late.P95, P99: 990, Max: 1000}}, late)
}

// TestConclude_PassesWhatWasSentInTime, and nothing that was sent late. The times are set.
func TestConclude_PassesWhatWasSentInTime(t *testing.T) {
	t.Parallel()
	l := newLoad(config{Rate: 100, Duration: time.Second}, &shop.Shop{})
	passed := func(factor int) bool {
		l.answers = sent(l.cfg, l.cfg.requests(), factor)
		return l.conclude(nil, nil, nil, nil).Passed
	}
	require.True(t, passed(1))
	require.False(t, passed(2))
}

// broken are the rules that a run has found broken.
func broken(o *outcome) (rules []books.Rule) {
	for _, p := range o.promises() {
		if p.Broken > 0 {
			rules = append(rules, p.Rule)
		}
	}
	return rules
}

func TestPromises_SayWhatWasChecked(t *testing.T) {
	t.Parallel()
	all := &outcome{Events: &published{}}
	require.Len(t, all.promises(), len(ofAnswers)+len(ofBooks)+1)
	require.Empty(t, broken(all))
	for _, rule := range append([]books.Rule{inTime, "a rule of tomorrow"}, append(ofAnswers, ofBooks...)...) {
		all.Violations = []books.Violation{{Rule: rule}}
		require.Equal(t, []books.Rule{rule}, broken(all))
	}
	unread := &outcome{Unread: "no connection"}
	require.Len(t, unread.promises(), len(ofAnswers), "nothing is said of what was not read")
}

// The page has replays apart from first requests, and no tile for what was not measured.
func TestPage_ShowsReplaysApart(t *testing.T) {
	t.Parallel()
	draw := func(answers ...answer) (text, picture string) {
		l := newLoad(config{Rate: 50, Duration: time.Second}, &shop.Shop{})
		l.answers = answers
		page, err := l.conclude(nil, nil, nil, nil).page()
		require.NoError(t, err)
		svg, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(page.Picture), "data:image/svg+xml;base64,"))
		require.NoError(t, err)
		return fmt.Sprint(page.Verdict, page.Tiles), string(svg)
	}
	at := func(k kind, replayed bool) answer {
		return answer{request: request{kind: k}, Attempt: journal.Attempt{Status: 201, Replayed: replayed, Return: time.Millisecond}}
	}
	tiles, picture := draw(at(newOrder, false), at(replay, true))
	require.Contains(t, tiles, "replay, p50")
	require.Positive(t, strings.Index(picture, ">replays, p99</text>"))
	require.Positive(t, strings.Index(picture, ">first requests, p50</text>"))
	tiles, picture = draw(at(newOrder, false))
	require.NotContains(t, tiles, "replay")
	require.NotContains(t, tiles, "effect of its event")
	require.Negative(t, strings.Index(picture, "replays"))
	tiles, _ = draw()
	require.Contains(t, tiles, "Failed: the rate was not kept")
}
