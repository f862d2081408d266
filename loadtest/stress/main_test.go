package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/books"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.NoLeaks()) }

// drive runs the whole command against a fake shop at 100/s for two seconds.
func drive(t *testing.T, f func(*fakeShop)) (text string, s *outcome, err error) {
	t.Helper()
	shop, url := newFakeShop(t)
	f(shop)
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

	all := s.all()
	require.Equal(t, 200, all.Requests)
	for _, r := range s.Rows {
		require.NotZero(t, r.Requests, "no %s was sent", r.Kind)
		require.Equal(t, r.Requests, r.OK, r.Kind)
	}
	require.Equal(t, all.New, s.Effects[placeOrder]+s.Effects[payCard]+s.Effects[payWallet])
	require.Regexp(t, `report +\S+\.html\npicture +\S+\.png\ndata +\S+\.json\n$`, text)
	files, err := filepath.Glob("stress-*")
	require.NoError(t, err)
	require.Empty(t, files, "files belong into STRESS_OUT")
	sent := 0
	for _, c := range s.Classes {
		sent += c.Requests
	}
	require.Equal(t, all.Requests, sent)
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
		for _, rule := range []books.Rule{oneEffect, sameBytes, noSurplus} {
			require.NotZero(t, s.broken()[rule], "%s not found in %v", rule, s.broken())
		}
	})
	t.Run("no charges", func(t *testing.T) {
		t.Parallel()
		_, s, err := drive(t, func(f *fakeShop) { f.uncharged = true })
		require.ErrorIs(t, err, errOff)
		require.Equal(t, []books.Rule{books.OneCharge}, slices.Collect(maps.Keys(s.broken())))
	})
	t.Run("500 now and then", func(t *testing.T) {
		t.Parallel()
		_, s, err := drive(t, func(f *fakeShop) { f.failEvery = 17 })
		require.ErrorIs(t, err, errOff)
		require.NotZero(t, s.broken()[answeredAsDue])
		require.NotZero(t, s.all().Unexpected)
	})
}

func TestConfig_IsRead(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]string{"--short"}, []string{"RATE=500", "BASE_URL=http://x/"})
	require.NoError(t, err)
	require.Equal(t, shortDuration, cfg.Duration)
	require.Equal(t, "http://x", cfg.BaseURL)
	require.Equal(t, 5000, cfg.requests())
	for _, environ := range []string{"RATE=0", "RATE=x", "DURATION=-1s", "DURATION=60"} {
		_, err := parseConfig(nil, []string{environ})
		require.Error(t, err, environ)
	}
}

func TestPacer_SendsDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	p := pacer{rate: 50, requests: 100}
	require.Equal(t, duplicate, slot(2))
	require.Equal(t, 20*time.Millisecond, p.due(1))
	require.Equal(t, p.due(1), p.due(2))
	require.Equal(t, 60*time.Millisecond, p.due(3))
	wait, stop := p.Pace(50*time.Millisecond, 3)
	require.Equal(t, 10*time.Millisecond, wait)
	require.False(t, stop)
	_, stop = p.Pace(0, 100)
	require.True(t, stop)
	for n, k := range cycle {
		if k == duplicate {
			require.Contains(t, []kind{pairOrder, pairCard, pairWallet}, cycle[n-1])
		}
	}
}

func TestPunctuality_ShowsLateRequests(t *testing.T) {
	t.Parallel()
	late := func(factor int) punctual {
		p, sent := pacer{rate: 100}, map[uint64]time.Duration{}
		for n := range uint64(101) {
			sent[n] = time.Second + time.Duration(factor)*p.due(n)
		}
		return p.punctuality(sent)
	}
	require.Equal(t, punctual{Asked: 100, Achieved: 100, Kept: true}, late(1))
	require.Equal(t, punctual{Asked: 100, Achieved: 50, P99: 990, Max: 1000, Kept: false}, late(2))
}

// TestOutcome_PassesWhatWasSentInTime, and nothing that was sent late. The times are set.
func TestOutcome_PassesWhatWasSentInTime(t *testing.T) {
	t.Parallel()
	cfg := config{Rate: 100, Duration: time.Second}
	passed := func(factor int) bool {
		o := newOutcome(cfg, "test")
		for n := range uint64(cfg.requests()) {
			o.sent[n] = time.Duration(factor) * cfg.pace().due(n)
			o.all().Requests++
		}
		o.close()
		return o.Passed
	}
	require.True(t, passed(1))
	require.False(t, passed(2))
}
