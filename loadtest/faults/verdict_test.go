package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

func TestConfig_IsRepeatedByItsCommand(t *testing.T) {
	t.Parallel()
	cfg, err := parseConfig([]string{"SEED=", "DURATION=8h"})
	require.NoError(t, err)
	require.NotZero(t, cfg.Seed, "drawn, and printed")
	require.Equal(t, 8*time.Hour, cfg.Duration)
	require.Contains(t, cfg.command(), "DURATION=8h")
	cfg, err = parseConfig([]string{"SEED=7", "FAULTS=replica kill,redis flush"})
	require.NoError(t, err)
	require.Contains(t, cfg.command(), "SEED=7 FAULTS='replica kill,redis flush'")
	for _, wrong := range []string{"CLIENTS=0", "DURATION=-1s", "FAULT_MAX=1s", "SEED=x", "FAULTS=earthquake", "EXPIRY=shrt"} {
		_, err := parseConfig([]string{wrong})
		require.Error(t, err, wrong)
	}
}

// campaignOf has ten seconds of load, one attempt every tenth of a second, and one fault in the
// middle.
func campaignOf() (*campaign, []journal.Attempt) {
	c := &campaign{cfg: config{Floor: 5}, out: io.Discard, baseline: map[string]map[string]float64{"api-1": {}, "api-2": {}}, result: result{Duration: 10 * time.Second,
		Runs: []faultRun{{Name: "kill api-1", Kind: "replica kill", Injected: 4 * time.Second, Healed: 6 * time.Second, Recovered: 7 * time.Second}}}}
	var attempts []journal.Attempt
	for at := time.Duration(0); at < c.Duration; at += time.Second / 10 {
		attempts = append(attempts, journal.Attempt{Invoke: at, Return: at + time.Millisecond, Status: 201})
	}
	return c, attempts
}

func TestInconclusive_NamesWhatWasMissing(t *testing.T) {
	t.Parallel()
	c, attempts := campaignOf()
	require.Empty(t, c.inconclusive(attempts))
	require.Equal(t, 20, c.Runs[0].InFlight)

	tests := map[string]func(c *campaign){
		"no fault ran":            func(c *campaign) { c.Runs = nil },
		"below the floor":         func(c *campaign) { c.cfg.Floor = 11 },
		"met no request":          func(c *campaign) { c.Runs[0].Injected, c.Runs[0].Healed = 11*time.Second, 12*time.Second },
		"kill met no request in ": func(c *campaign) { c.Runs[0].NotFired = true },
		"could break":             func(c *campaign) { c.Runs[0].Hits = new(int) },
	}
	for want, change := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c, attempts := campaignOf()
			change(c)
			found := c.inconclusive(attempts)
			require.Len(t, found, 1)
			require.Equal(t, verify.Conclusive, found[0].Rule)
			require.Contains(t, found[0].Detail, want)
		})
	}
}

func TestLeaks_CompareWithTheBaseline(t *testing.T) {
	t.Parallel()
	held := func(goroutines, connections, waiters float64) map[string]map[string]float64 {
		return map[string]map[string]float64{"api-1": {"go_goroutines": goroutines, "postgres_pool_acquired_connections": connections, "idempotency_waiters": waiters}}
	}
	baseline := held(100, 3, 0)
	require.Empty(t, leaks(baseline, held(120, 0, 0)))
	for what, after := range map[string]map[string]map[string]float64{
		"goroutines is 1000, and may be 160": held(1000, 0, 0), "connections is 21": held(100, 21, 0), "waiters is 1": held(100, 0, 1),
	} {
		found := leaks(baseline, after)
		require.Len(t, found, 1, what)
		require.Equal(t, verify.Resources, found[0].Rule)
		require.Contains(t, found[0].Detail, what)
	}
	require.NotEmpty(t, leaks(baseline, nil), "no answer")
}

func TestRecoveries_HaveDeadlines(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		slow func(*faultRun)
		rule books.Rule
	}{
		"after healing":         {func(i *faultRun) { i.Recovered = i.Healed + backWithin + 1 }, verify.Recovery},
		"nginx after a death":   {func(i *faultRun) { i.Death = &death{Nginx: nginxWithin + 1} }, verify.Recovery},
		"key of a dead replica": {func(i *faultRun) { i.Death = &death{Decided: decidedWithin + 1} }, verify.KeysRecovered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := campaignOf()
			c.Runs[0].Death = &death{Nginx: nginxWithin, Decided: decidedWithin}
			require.Empty(t, c.recoveries())
			test.slow(&c.Runs[0])
			found := c.recoveries()
			require.Len(t, found, 1)
			require.Equal(t, test.rule, found[0].Rule)
		})
	}
}

// A relay's death is proved by an event that came twice, unless Redis has lost both.
func TestInconclusive_WantsARepeatedEventAfterARelayDied(t *testing.T) {
	t.Parallel()
	c, attempts := campaignOf()
	c.Runs[0].Breaks = []fault.Damage{fault.RelayRepeats}
	require.Len(t, c.inconclusive(attempts), 1)
	c.books.Streams = []books.Stream{{IDs: []string{"e", "e"}}}
	require.Empty(t, c.inconclusive(attempts))
	c.books.Streams = nil
	c.Runs = append(c.Runs, faultRun{Name: "redis flush", Kind: "redis flush", Breaks: []fault.Damage{fault.RedisLoses}, Injected: 7 * time.Second, Healed: 8 * time.Second})
	require.Empty(t, c.inconclusive(attempts))
}

func TestInconclusive_FailsACampaignThatSeesNothingWithoutProtection(t *testing.T) {
	t.Parallel()
	c, attempts := campaignOf()
	c.cfg.System = control
	found := c.inconclusive(attempts)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Detail, "nothing happened twice")
	c.Score = verify.Score{DoubledKeys: 1}
	require.Empty(t, c.inconclusive(attempts), "what others do wrong is counted, and no failure")
	c.cfg.System, c.Score = "setnx", verify.Score{}
	require.Empty(t, c.inconclusive(attempts))
}
