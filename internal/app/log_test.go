package app

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLog_HidesIdempotencyKeysInProduction(t *testing.T) {
	t.Parallel()
	const key = "invoice of Ada Lovelace"
	hashes := map[string]bool{}
	for _, c := range []struct {
		cfg    Config
		logged string
	}{
		{Config{Environment: Development, LogSecret: "s"}, key},
		{Config{Environment: Production}, "not logged without LOG_SECRET"},
		{Config{Environment: Production, LogSecret: "s"}, Config{Environment: Production, LogSecret: "s"}.LogKey(key)},
		{Config{Environment: Production, LogSecret: "t"}, Config{Environment: Production, LogSecret: "t"}.LogKey(key)},
	} {
		var out bytes.Buffer
		c.cfg.NewLogger(&out).With("pod_id", "api-1").Info("idempotency check", "key", key, "result", "replay")
		require.Contains(t, out.String(), `"key":"`+c.logged+`"`)
		if c.cfg.Environment == Production {
			require.NotContains(t, out.String(), "Ada")
		}
		hashes[c.logged] = true
	}
	require.Len(t, hashes, 4, "the hash is keyed")
}

func TestConfig_ShowsNoReplicaInProduction(t *testing.T) {
	t.Parallel()
	require.Equal(t, "api-1", Config{Environment: Development, Replica: "api-1"}.servedBy())
	require.Empty(t, Config{Environment: Production, Replica: "api-1"}.servedBy())
}
